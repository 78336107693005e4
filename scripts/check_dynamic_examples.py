#!/usr/bin/env python3
"""Runs the worked examples (examples/dynamic) by each strategy on each platform, and prints a table of cases that pass.

    python3 scripts/check_dynamic_examples.py [--intel VENV] [NAME ...]

The first platform is what the ICD loader finds (PoCL); --intel names a virtual environment with intel-opencl-rt, whose
runtime is the second. Exit 1 if a case differs.
"""

import argparse
import glob
import os
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
STRATEGIES = ("select", "predicate", "host")


def platforms(intel, folder):
    yield "default", dict(os.environ)
    if intel:
        library = os.path.join(intel, "lib")
        with open(os.path.join(folder, "intel.icd"), "w") as file:
            file.write(os.path.join(library, "libintelocl.so") + "\n")
        yield "intel", {**os.environ, "OCL_ICD_VENDORS": folder, "LD_LIBRARY_PATH": library}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--intel", help="virtual environment with Intel's runtime")
    parser.add_argument("--program", default=os.path.join(ROOT, "build/bin/example_cases"))
    flags = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for platform, environment in platforms(flags.intel, folder):
            for module in sorted(glob.glob(os.path.join(ROOT, "examples/dynamic/*/module.hlo"))):
                name = os.path.basename(os.path.dirname(module))
                if flags.names and name not in flags.names:
                    continue
                cells = []
                for strategy in STRATEGIES:
                    done = subprocess.run([flags.program, os.path.dirname(module), strategy], env=environment, capture_output=True,
                                          text=True, timeout=300)
                    lines = done.stdout.splitlines()
                    good, bad = (sum(line.startswith(word) for line in lines) for word in ("ok  ", "FAIL"))
                    cells.append(f"{strategy} {good}/{good + bad}")
                    if done.returncode:
                        failed += 1
                        print(done.stderr.strip() or "\n".join(line for line in lines if line.startswith("FAIL")), file=sys.stderr)
                print(f"{platform:<8} {name:<28} {'  '.join(cells)}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
