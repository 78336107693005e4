#!/usr/bin/env python3
"""Runs the modules of make_collective_modules.py or make_sharded_modules.py in every shape of job and compares outputs
and bits.

    python3 scripts/check_collectives.py FOLDER [--build=build] [--only=REGEX] [--jobs=REGEX]

Each module runs on 8 devices as 8 ranks x 1 device, 4 x 2, 2 x 4, 1 x 8, in process (no MPI) and once more as 8 x 1, twice
in each job (--jobs picks by those names). For each job: how many modules equal JAX's outputs within hlorun's tolerance for
their types, and how many have the same bits in every array as the first job. Exit code 1 unless all do. One job runs all
modules, so that the launcher and the OpenCL runtime start once a job, not once a module.
"""

import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
from launcher import mpirun  # noqa: E402  found through the path above

JOBS = [("8 ranks x 1", 8, 1), ("4 ranks x 2", 4, 2), ("2 ranks x 4", 2, 4), ("1 rank x 8", 1, 8), ("in process, 8", 0, 8),
        ("8 ranks x 1 again", 8, 1)]


def run(binary, folder, names, ranks, devices):
    """Returns {(module, device, result): (checksum, verdict)}, the seconds, and what went wrong."""
    with tempfile.TemporaryDirectory() as logs:
        log = os.path.join(logs, "log")
        launcher = mpirun(ranks) if ranks else []
        start = time.time()
        done = subprocess.run([*launcher, binary, folder, str(devices), log, *names], capture_output=True, text=True, check=False)
        rows = {}
        for path in glob.glob(log + ".*"):
            with open(path, encoding="utf-8") as lines:
                for line in lines:
                    name, device, result, checksum, verdict = line.rstrip("\n").split(" ", 4)
                    rows[name, int(device), int(result)] = (checksum, verdict)
        return rows, time.time() - start, "" if done.returncode == 0 else done.stderr.strip()


def good(rows, names, is_good):
    """The modules whose every array of every device is good."""
    seen = {name: True for name in {key[0] for key in rows}}
    for key, value in rows.items():
        seen[key[0]] &= is_good(key, value)
    return [name for name in names if seen.get(name, False)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--build", default="build")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", default="")
    arguments = parser.parse_args()
    names = sorted(name for name in os.listdir(arguments.folder) if re.search(arguments.only, name))
    if not names:
        parser.error(f"no module of {arguments.folder} is called {arguments.only}")
    binary = os.path.join(arguments.build, "bin", "collective_set")
    failed = False
    reference = None
    print("| job | modules | equal to JAX | bits of the first job | seconds |\n|---|---|---|---|---|", flush=True)
    for title, ranks, devices in JOBS:
        if not re.search(arguments.jobs, title):
            continue
        rows, seconds, error = run(binary, arguments.folder, names, ranks, devices)
        reference = reference if reference is not None else rows
        equal = good(rows, names, lambda key, value: value[1] == "equal")
        same = good(rows, names, lambda key, value: reference.get(key, ("",))[0] == value[0])
        print(f"| {title} | {len(names)} | {len(equal)} | {len(same)} | {seconds:.0f} |", flush=True)
        for name in sorted(set(names) - set(equal)):
            verdicts = sorted({v for (n, _, _), (_, v) in rows.items() if n == name and v != "equal"})
            print(f"{title}: {name}: {verdicts[0] if verdicts else 'did not run'}", file=sys.stderr)
        if error:
            print(f"{title}: {error}", file=sys.stderr)
        failed |= bool(error) or len(equal) < len(names) or len(same) < len(names)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
