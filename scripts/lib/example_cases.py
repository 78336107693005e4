"""Runs build/bin/example_cases, which checks a module on each of its cases."""

import argparse
import os
import subprocess

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def arguments(description):
    """The parser of a script that runs it: NAME ..., --intel, --program."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--intel", help="virtual environment with Intel's runtime")
    parser.add_argument("--program", default=os.path.join(ROOT, "build/bin/example_cases"))
    return parser


def run(program, folder, strategy, environment):
    """FOLDER's cases by a strategy: (how many pass, how many there are, what went wrong)."""
    done = subprocess.run([program, folder, strategy], env=environment, capture_output=True, text=True, timeout=600)
    lines = done.stdout.splitlines()
    failures = [line for line in lines if line.startswith("FAIL")]
    good = sum(line.startswith("ok  ") for line in lines)
    trouble = done.stderr.strip() or "\n".join(failures) if done.returncode else ""
    if done.returncode and not trouble:
        trouble = f"exit code {done.returncode}"
    return good, good + len(failures), trouble
