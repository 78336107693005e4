#!/usr/bin/env python3
"""Runs the worked examples (examples/dynamic) by each strategy on each platform, and prints a table of cases that pass.

    python3 scripts/check_dynamic_examples.py [--intel VENV] [NAME ...]

The first platform is what the ICD loader finds (PoCL); --intel names a virtual environment with intel-opencl-rt, whose
runtime is the second. Exit 1 if a case differs.
"""

import glob
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
from example_cases import ROOT, arguments, run  # noqa: E402  found through the path above
from platforms import platforms  # noqa: E402

STRATEGIES = ("select", "predicate", "host")


def main():
    flags = arguments(__doc__).parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for platform, environment in platforms(flags.intel, folder):
            for module in sorted(glob.glob(os.path.join(ROOT, "examples/dynamic/*/module.hlo"))):
                name = os.path.basename(os.path.dirname(module))
                if flags.names and name not in flags.names:
                    continue
                cells = []
                for strategy in STRATEGIES:
                    good, count, trouble = run(flags.program, os.path.dirname(module), strategy, environment)
                    cells.append(f"{strategy} {good}/{count}")
                    if trouble:
                        failed += 1
                        print(trouble, file=sys.stderr)
                print(f"{platform:<8} {name:<28} {'  '.join(cells)}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
