"""Many functions through one hlorun: each compared by name with what its framework computed.

A Program is a function of the arrays of a pool with what it must give. Programs run in batches, one module each, so that
starting and compiling cost little; a batch that hlorun refuses is halved until the culprit is alone.
"""

import argparse
import dataclasses
import os
import subprocess
import sys
import tempfile

import numpy as np

SCRIPTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, SCRIPTS)
import export_jax  # noqa: E402  found through the path above


@dataclasses.dataclass
class Program:
    name: str
    mode: str
    function: object  # of the pool, traceable by JAX
    expected: list | None = None  # None: what JAX computes
    tolerance: float = 2e-5
    verdict: str = ""


def named(rows, value):
    """{"place.name": (letters, value(place, name))} of rows (place, letters of the arguments, names): the functions of arrays
    alone. A name with a last _ is left out."""
    found = {}
    for place, letters, names in rows:
        for name in names.split():
            if name.endswith("_"):
                continue
            key = f"{place}.{name}"
            found[f"{key} ({letters})" if key in found else key] = (letters, value(place, name))
    return found


def command_line(description, only):
    """The parser of a script that makes a table. `only` says which functions --only picks."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help=only)
    parser.add_argument("--binary", default=os.path.join(SCRIPTS, "..", "build", "bin", "hlorun"))
    parser.add_argument("--batch", type=int, default=60, help="programs to a module")
    return parser


def difference(actual, expected, tolerance):
    """None, or what differs. Floats may be off by `tolerance` of the largest magnitude among the results."""
    if actual.shape != expected.shape:
        return f"shape {actual.shape}, expected {expected.shape}"
    if expected.dtype.kind in "biu":
        wrong = np.flatnonzero(actual.ravel() != expected.ravel())
    else:
        kind = np.complex128 if expected.dtype.kind == "c" else np.float64
        a, e = actual.astype(kind).ravel(), expected.astype(kind).ravel()
        finite = np.abs(e[np.isfinite(e)])
        allowed = tolerance * max(1e-30, finite.max() if finite.size else 0)
        with np.errstate(all="ignore"):
            same = (a == e) | (np.abs(a - e) <= allowed) | (np.isnan(a) & np.isnan(e))
        wrong = np.flatnonzero(~same)
    if not wrong.size:
        return None
    i = int(wrong[0])
    return f"[{i}] is {actual.ravel()[i]}, expected {expected.ravel()[i]} ({wrong.size} of {expected.size})"


def run_module(binary, text, inputs, count, types):
    """The module's results, or the error's last line."""
    with tempfile.TemporaryDirectory(prefix="hlorun_functions_") as folder:
        export_jax.write_folder(folder, text, inputs, [])
        done = subprocess.run([binary, f"--inputs={folder}/inputs", f"--outputs={folder}/outputs", f"{folder}/module.hlo"],
                              capture_output=True, text=True, timeout=900, check=False)
        if done.returncode != 0:
            return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        results = [np.load(os.path.join(folder, "outputs", f"{i}.npy")) for i in range(count)]
    return [r if r.dtype == t else r.view(t) for r, t in zip(results, types, strict=True)]


def run_batch(programs, pool, binary):
    """Fills in the verdicts: "equal", or what is wrong."""
    import jax

    def everything(values):
        return [jax.tree.leaves(p.function(values)) for p in programs]

    try:
        lowered = jax.jit(everything, keep_unused=True).lower(pool)
        compiled = lowered.compile()
    except Exception as error:  # JAX itself has no such thing; halved until it is alone
        if len(programs) == 1:
            programs[0].verdict = "JAX: " + (str(error).strip().splitlines() or [type(error).__name__])[0][:90]
            return
        run_batch(programs[: len(programs) // 2], pool, binary)
        run_batch(programs[len(programs) // 2:], pool, binary)
        return
    computed = [[np.asarray(leaf) for leaf in leaves] for leaves in compiled(pool)]
    flat = [leaf for leaves in computed for leaf in leaves]
    inputs = [np.asarray(leaf) for leaf in jax.tree.leaves(pool)]
    actual = run_module(binary, export_jax.hlo_text(lowered.compiler_ir("hlo")), inputs, len(flat), [f.dtype for f in flat])
    if isinstance(actual, str):
        if len(programs) == 1:
            programs[0].verdict = actual[:160]
            return
        run_batch(programs[: len(programs) // 2], pool, binary)
        run_batch(programs[len(programs) // 2:], pool, binary)
        return
    at = 0
    for program, leaves in zip(programs, computed, strict=True):
        expected = program.expected if program.expected is not None else leaves
        wrong = [difference(a, np.asarray(e), program.tolerance) for a, e in zip(actual[at:at + len(leaves)], expected, strict=True)]
        at += len(leaves)
        program.verdict = next((w for w in wrong if w is not None), "equal")


def run_all(programs, pool, binary, batch):
    for begin in range(0, len(programs), batch):
        run_batch(programs[begin:begin + batch], pool, binary)
        wrong = [p for p in programs[begin:begin + batch] if p.verdict != "equal"]
        for p in wrong:
            print(f"{p.name} ({p.mode}): {p.verdict}", file=sys.stderr, flush=True)
        print(f"{min(begin + batch, len(programs))} of {len(programs)}", file=sys.stderr, flush=True)


def table(programs, modes):
    """Markdown: a line a function, a column a mode."""
    by_name = {}
    for p in programs:
        by_name.setdefault(p.name, {})[p.mode] = p.verdict
    lines = ["| function | " + " | ".join(modes) + " |", "|---" * (len(modes) + 1) + "|"]
    for name, verdicts in sorted(by_name.items()):
        lines.append(f"| {name} | " + " | ".join(verdicts.get(m, "–").replace("|", "/") for m in modes) + " |")
    return "\n".join(lines), len(by_name)
