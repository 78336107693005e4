#!/usr/bin/env python3
"""Checks annotated modules: cut for their own number of devices, they must give what the whole program gives on XLA:CPU.

    python3 scripts/check_sharded.py [--shared ../shared] [--hlorun build/bin/hlorun] [--only REGEX] [--keep DIR]
                                     [--jobs process,mpi]

Each module NAME_N.hlo of SHARED/models/sharded runs with N devices in one process and as N ranks under mpirun, with
weight-like inputs and with its data parameters. Inputs and expected outputs are made once by SHARED/xla_reference.py from
the program without its annotations, and kept in --keep (default: a temporary folder). Prints a table; exits 1 when anything
differs, is refused, or had to be replicated. Modules whose arguments do not fit in memory are named and left out.
Needs jax, jaxlib, numpy, ml_dtypes.
"""
import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "lib"))
from launcher import mpirun  # noqa: E402  found through the path above
from reference import reference  # noqa: E402

# family: (data parameters, bound of integer inputs); "sharded" in SHARED/models/README.md
DATA = {"imagenette": ("102", None), "vit": ("199", None), "cappa": ("215", "32000")}
BITS = {"pred": 8, "bf16": 16, "f16": 16}


def argument_bytes(path):
    """Of the arrays in the module's entry layout."""
    with open(path, encoding="utf-8") as file:
        header = file.readline()
    layout = header.split("entry_computation_layout={", 1)[1].split("->", 1)[0]
    total = 0
    for kind, dims in re.findall(r"\b([a-z]+\d*)\[([\d,]*)\]", layout):
        count = 1
        for d in filter(None, dims.split(",")):
            count *= int(d)
        total += count * BITS.get(kind, int(re.sub(r"\D", "", kind) or 32)) // 8
    return total


def memory_bytes():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def jobs(hlorun, count):
    return {"process": ("in process", [hlorun, f"--devices={count}", f"--num_partitions={count}"]),
            "mpi": (f"{count} ranks", [*mpirun(count), hlorun])}


def check(path, count, folder, job, flags):
    """Runs one job; returns (verdict, report, standard error)."""
    command = [*job, "--json", "--iterations=1", f"--inputs={folder}/inputs", f"--expect={folder}/expected", *flags.flag, path]
    start = time.time()
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=flags.timeout)
    except subprocess.TimeoutExpired:
        return "TIMEOUT", {}, "", time.time() - start
    report = next((json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")), {})
    verdict = {0: "equal", 1: "DIFFERENT"}.get(done.returncode, "TROUBLE")
    if verdict == "equal" and "cannot be cut" in done.stderr:
        verdict = "REPLICATED"
    return verdict, report, done.stderr, time.time() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", default=os.environ.get("HLORUN_SHARED", os.path.join(HERE, "..", "..", "shared")))
    parser.add_argument("--hlorun", default=os.path.join(HERE, "..", "build", "bin", "hlorun"))
    parser.add_argument("--only", default="")
    parser.add_argument("--keep")
    parser.add_argument("--jobs", default="process,mpi")
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--flag", action="append", default=[], help="another flag of hlorun")
    flags = parser.parse_args()
    keep = flags.keep or tempfile.mkdtemp(prefix="hlorun_sharded_")
    failures = 0
    print("| module | inputs | job | verdict | best ms | compile s | peak MiB a device | seconds |\n|---|---|---|---|---|---|---|---|")
    for path in sorted(glob.glob(os.path.join(flags.shared, "models", "sharded", "*.hlo"))):
        name = os.path.basename(path)[:-4]
        if not re.search(flags.only, name):
            continue
        family, count = name.rsplit("_", 1)
        if 2.5 * argument_bytes(path) > memory_bytes():
            print(f"| {name} | | | not run: {argument_bytes(path) / 2**30:.0f} GiB of arguments | | | | |", flush=True)
            continue
        normal, integers = DATA.get(family, (None, None))
        for variant in ["defaults"] + (["data"] if normal or integers else []):
            folder = os.path.join(keep, name, variant)
            data = variant == "data"
            trouble = reference(flags.shared, path, folder, normal if data else None, integers if data else None)
            if trouble:
                print(f"| {name} | {variant} | XLA:CPU | {trouble} | | | | |", flush=True)
                failures += 1
                continue
            for key in flags.jobs.split(","):
                title, job = jobs(flags.hlorun, int(count))[key]
                verdict, report, errors, seconds = check(path, int(count), folder, job, flags)
                failures += verdict != "equal"
                print(f"| {name} | {variant} | {title} | {verdict} | {report.get('best_ms', float('nan')):.0f} | "
                      f"{report.get('compile_s', float('nan')):.1f} | {report.get('peak_bytes', 0) / 2**20:.0f} | {seconds:.0f} |",
                      flush=True)
                if verdict != "equal":
                    print("    " + "\n    ".join(errors.strip().splitlines()[:4]), file=sys.stderr, flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
