#!/usr/bin/env python3
"""A JAX function to a folder that hlorun runs: module.hlo, inputs/N.npy, expected/N.npy.

    python3 scripts/export_jax.py model.py:predict --shapes "f32[8,128] s32[8]" -o exported/
    python3 scripts/export_jax.py model.py:loss --arguments model.py:example_arguments -o exported/
    python3 scripts/export_jax.py model.py:predict --shapes "f32[3,128] s32[3]" --symbolic "b,128 b" --limit b=8 -o exported/
    hlorun --inputs=exported/inputs --expect=exported/expected exported/module.hlo

--arguments names a function without parameters that returns the tuple of arguments (any trees of arrays); --shapes makes
seeded ones. The module keeps every argument, in flattened order, large constants and the source positions of each
instruction. --optimized writes what XLA:CPU made of it (fusions, partitions) instead of what JAX traced.
--symbolic names sizes that vary, a shape an argument as in jax.export.symbolic_shape ("" or - for one that does not vary);
--limit bounds them. A size without a limit stays open: run it with --bound=NAME=N or --bucket=pow2.
From Python: export_jax.export(function, arguments, folder).
"""

import argparse
import importlib.util
import os
import re
import sys

import numpy as np

DTYPES = {"pred": "bool", "f16": "float16", "f32": "float32", "f64": "float64", "bf16": "bfloat16", "c64": "complex64",
          "c128": "complex128"}
DTYPES |= {f"{sign}{bits}": f"{name}{bits}" for sign, name in (("s", "int"), ("u", "uint")) for bits in (4, 8, 16, 32, 64)}


def hlo_text(computation):
    """The text of an XlaComputation, nothing elided."""
    from jaxlib import _hlo

    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    return computation.get_hlo_module().to_string(options)


def save_arrays(folder, arrays):
    """N.npy for each leaf; types that numpy's format lacks are stored as raw bytes, as the module gives their type."""
    os.makedirs(folder, exist_ok=True)
    for i, array in enumerate(arrays):
        array = np.asarray(array)
        if array.dtype.kind == "V" or array.dtype.name not in np.sctypeDict:
            array = array.view(np.uint8 if array.dtype.itemsize == 1 else f"V{array.dtype.itemsize}")
        np.save(os.path.join(folder, f"{i}.npy"), array)


def write_program(folder, text, inputs):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "module.hlo"), "w", encoding="utf-8") as file:
        file.write(text)
    save_arrays(os.path.join(folder, "inputs"), inputs)


def write_folder(folder, text, inputs, outputs):
    write_program(folder, text, inputs)
    save_arrays(os.path.join(folder, "expected"), outputs)


def export(function, arguments, folder, optimized=False):
    """Writes `function(*arguments)` to `folder`, with what it computes on this machine as the expected outputs."""
    import jax

    jitted = function if hasattr(function, "lower") else jax.jit(function, keep_unused=True)
    lowered = jitted.lower(*arguments)
    compiled = lowered.compile()
    text = compiled.as_text() if optimized else hlo_text(lowered.compiler_ir("hlo"))
    inputs = [np.asarray(leaf) for leaf in jax.tree.leaves(arguments)]  # before a donated one is gone
    outputs = jax.tree.leaves(compiled(*arguments))
    write_folder(folder, text, inputs, outputs)


def export_bounded(function, arguments, symbolic, limits, folder):
    """Writes `function` for arrays of varying size: `symbolic` holds "b,10" or None for each argument, `limits` {"b": 8}."""
    import jax

    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
    import bounded

    inputs = [np.asarray(leaf) for leaf in jax.tree.leaves(arguments)]
    if len(inputs) != len(arguments) or len(symbolic) != len(inputs):
        raise SystemExit(f"--symbolic gives {len(symbolic)} shapes for {len(inputs)} arrays: one each, and no trees")
    specs = [spec if spec else array.shape for spec, array in zip(symbolic, inputs)]
    text = bounded.export_text(function, specs, [a.dtype for a in inputs], limits, hlo_text)
    write_folder(folder, text, inputs, jax.tree.leaves(function(*arguments)))


def seeded(shapes, seed):
    """Arrays for "f32[8,128] s32[4]": normal floats, integers 0 to 3, random booleans."""
    import ml_dtypes  # noqa: F401  numpy learns bfloat16 and the narrow types from it

    rng = np.random.default_rng(seed)
    arrays = []
    for shape in shapes.split():
        match = re.fullmatch(r"(\w+)\[([\d,]*)\]", shape)
        if not match or (match[1] not in DTYPES and not match[1].startswith("f8")):
            raise SystemExit(f"'{shape}' is no shape such as f32[8,128]")
        dtype = np.dtype(DTYPES.get(match[1], "float8_" + match[1][2:]))
        dims = tuple(int(d) for d in match[2].split(",") if d)
        if dtype.kind == "b":
            arrays.append(rng.integers(0, 2, dims).astype(bool))
        elif dtype.kind in "iu" or "int" in dtype.name:
            arrays.append(rng.integers(0, 4, dims).astype(dtype))
        elif dtype.kind == "c":
            arrays.append((rng.standard_normal(dims) + 1j * rng.standard_normal(dims)).astype(dtype))
        else:
            arrays.append(rng.standard_normal(dims).astype(dtype))
    return tuple(arrays)


def load_symbol(name):
    """FILE.py:NAME or MODULE:NAME."""
    place, _, symbol = name.rpartition(":")
    if not place:
        raise SystemExit(f"'{name}' must be FILE.py:FUNCTION or MODULE:FUNCTION")
    if place.endswith(".py"):
        sys.path.insert(0, os.path.dirname(os.path.abspath(place)))
        spec = importlib.util.spec_from_file_location(os.path.basename(place)[:-3], place)
        if spec is None or not os.path.exists(place):
            raise SystemExit(f"there is no file {place}")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(place)
    if not hasattr(module, symbol):
        raise SystemExit(f"{place} has no {symbol}")
    return getattr(module, symbol)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("function", help="FILE.py:FUNCTION or MODULE:FUNCTION")
    parser.add_argument("--arguments", help="FILE.py:FUNCTION that returns the arguments")
    parser.add_argument("--shapes", default="", help='such as "f32[8,128] s32[4]"')
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--symbolic", help='such as "b,128 b -": sizes that vary')
    parser.add_argument("--limit", action="append", default=[], metavar="NAME=N", help="the bound of a size that varies")
    parser.add_argument("--optimized", action="store_true", help="write XLA:CPU's optimised module")
    parser.add_argument("-o", "--output", required=True, help="the folder")
    flags = parser.parse_args()
    if flags.arguments and flags.shapes:
        parser.error("give --arguments or --shapes, not both")
    arguments = load_symbol(flags.arguments)() if flags.arguments else seeded(flags.shapes, flags.seed)
    if flags.symbolic:
        limits = dict((name, int(n)) for name, _, n in (limit.partition("=") for limit in flags.limit))
        symbolic = [None if spec == "-" else spec for spec in flags.symbolic.split()]
        export_bounded(load_symbol(flags.function), tuple(arguments), symbolic, limits, flags.output)
    else:
        export(load_symbol(flags.function), tuple(arguments), flags.output, flags.optimized)
    print(f"hlorun --inputs={flags.output}/inputs --expect={flags.output}/expected {flags.output}/module.hlo")


if __name__ == "__main__":
    main()
