#!/usr/bin/env python3
"""Is a module that jaxlib refuses refused by us, too? Valid conformance cases with one token changed, read by both.

    build/tests/conformance/conformance_dump /tmp/cases
    python3 scripts/verifier_against_jaxlib.py /tmp/cases --count 3000 --seed 1

jaxlib's parser runs in a child process a module, for many of its refusals abort. Prints every module that
we take and jaxlib refuses, and a table of verdicts. Exit 1 if we take one that jaxlib refuses, or if hlo-opt crashes.
"""

import argparse
import collections
import json
import os
import random
import re
import subprocess
import sys

from jaxlib import _hlo

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NUMBERS = ["0", "1", "2", "3", "5", "-1", "64", "4294967296"]
TYPES = ["pred", "s8", "s32", "u32", "f32", "bf16", "c64", "f64", "s64"]


def one_case_per_set_of_ops(cases):
    by_ops = {}
    for case in cases:
        by_ops.setdefault(tuple(sorted(set(re.findall(r" ([a-z][a-z0-9-]+)\(", case["text"])))), case)
    return list(by_ops.values())


def mutated(text, rng):
    tokens = re.findall(r"[A-Za-z_][\w.-]*|-?\d+|\s+|.", text)
    while True:
        i = rng.randrange(len(tokens))
        for pattern, choices in ((r"-?\d+", NUMBERS), ("|".join(TYPES), TYPES)):
            choice = rng.choice(choices)
            if re.fullmatch(pattern, tokens[i]) and tokens[i] != choice:
                return "".join(tokens[:i] + [choice] + tokens[i + 1:])


def jaxlib_verdict(text):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            _hlo.hlo_module_from_text(text)
            os.write(write, b"takes")
        except Exception as e:  # whatever jaxlib throws is its refusal
            os.write(write, ("refuses " + " ".join(str(e).split()))[:400].encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        verdict = pipe.read().decode(errors="replace")
    os.waitpid(child, 0)
    return verdict or "aborts"


def our_verdict(binary, text):
    result = subprocess.run([binary, "--passes=dce", "-"], input=text, capture_output=True, text=True, timeout=60)
    if result.returncode == 0:
        return "takes"
    message = (result.stderr.strip().splitlines() or ["no message"])[0]
    return ("refuses " if result.returncode == 2 else f"exits with {result.returncode} ") + message


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", help="folder that conformance_dump wrote")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--binary", default=os.path.join(ROOT, "build", "bin", "hlo-opt"))
    flags = parser.parse_args()
    with open(os.path.join(flags.cases, "cases.json"), encoding="utf-8") as file:
        cases = one_case_per_set_of_ops(json.load(file))
    rng = random.Random(flags.seed)
    table = collections.Counter()
    wrong = 0
    for _ in range(flags.count):
        case = rng.choice(cases)
        text = mutated(case["text"], rng)
        theirs, ours = jaxlib_verdict(text), our_verdict(flags.binary, text)
        verdicts = (theirs.split()[0], ours.split()[0])
        table[verdicts] += 1
        # Its parser leaves to its verifier, which Python cannot call, much of what ours refuses.
        if verdicts == ("takes", "takes") or verdicts[1] == "refuses":
            continue
        wrong += 1
        print(f"--- {case['name']}\njaxlib {theirs}\nhlorun {ours}\n{text}", flush=True)
    for (theirs, ours), count in sorted(table.items()):
        print(f"jaxlib {theirs:8} hlorun {ours:8} {count}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
