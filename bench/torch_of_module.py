#!/usr/bin/env python3
"""Runs a module's peer in PyTorch (bench/module_peers.py) eagerly and by torch.compile, and prints one line of JSON: "eager" and "compiled",
each with best_ms, median_ms and first_ms (of torch.compile with compiling), or with trouble: why there are none; {} for a module without a peer.

    python3 bench/torch_of_module.py MODULE --inputs DIR --expected DIR [--iterations N] [--rel_error_bound R] [--abs_error_bound A]

DIR/0.npy, 1.npy ... are the flattened entry parameters, and XLA's results. Weights are put where PyTorch has them before the clock starts;
data are other values in each iteration, written just before. The first run has the inputs as they are, and its results must be XLA's within
hlorun's bounds; else there are no times. In a process of its own: JAX and PyTorch have threads of their own. Needs torch.
"""
import argparse
import json
import os
import re
import time

import torch

from module_peers import PEERS, path_of
from runs import module_name
from torch_peer import load_array, torch_report

# Largest error as a share of the largest value, and relative L2 error: hlorun's (driver/arrays/compare.cc).
RELATIVE_BOUNDS = {torch.float32: 1e-4, torch.bfloat16: 2e-2}


def entry_parameters(text):
    """(path, type) of the entry's parameters, in order."""
    found = re.findall(r"^\s*(?:ROOT )?%?(\S+) = (\w+)\[[^\n]*? parameter\((\d+)\)", text[text.index("\nENTRY"):], re.MULTILINE)
    return [(path_of(name), type_name) for name, type_name, _ in sorted(found, key=lambda match: int(match[2]))]


def difference(result, expected, bounds):
    """What is apart by more than hlorun would let pass (driver/arrays/compare.cc), or None."""
    if result.shape != expected.shape or result.dtype != expected.dtype:
        return f"is {result.dtype}{list(result.shape)}, not {expected.dtype}{list(expected.shape)}"
    if not result.is_floating_point():
        return None if torch.equal(result, expected) else "other integers"
    result, expected = result.double().flatten(), expected.double().flatten()
    finite = result.isfinite() & expected.isfinite()
    # Equal or both NaN: without tolerances, what is not finite.
    if not torch.allclose(result[~finite], expected[~finite], rtol=0, atol=0, equal_nan=True):
        return "other infinities or NaN"
    return apart(result[finite], expected[finite], *bounds)


def apart(result, expected, relative, absolute):
    if not len(expected):
        return None
    error, largest = (result - expected).abs().max().item(), expected.abs().max().item()
    l2 = ((result - expected).norm() / expected.norm().clamp_min(1e-150)).item()
    if error <= (relative * largest if absolute is None else absolute) and l2 <= relative:
        return None
    return f"largest error {error:.3g} where the largest value is {largest:.3g}, relative L2 error {l2:.3g}"


def differences(results, folder, flags):
    """A line on the first result that is not the expected one, or None."""
    count = len(os.listdir(folder))
    if len(results) != count:
        return f"{len(results)} results, not {count}"
    for i, result in enumerate(results):
        relative = flags.rel_error_bound or RELATIVE_BOUNDS.get(result.dtype)
        expected = load_array(os.path.join(folder, f"{i}.npy"), "bf16" if result.dtype == torch.bfloat16 else "")
        found = difference(result, expected, (relative, flags.abs_error_bound))
        if found:
            return f"output {i}: {found}"
    return None


def first_run(make, values, wrap, batch):
    """The peer, its result and what that took."""
    peer = make({path: value.clone() for path, value in values.items()}, wrap)  # a step of training changes its weights
    start = time.perf_counter()
    result = peer.run(*batch)
    return peer, result, (time.perf_counter() - start) * 1e3


def side_report(peer, result, first_ms, batch, flags):
    """Times of a peer whose first results are right."""
    trouble = differences(peer.outputs(result), flags.expected, flags)
    if trouble:
        return {"trouble": f"differs: {trouble}"}
    return {"first_ms": first_ms, **torch_report(peer.run, batch, flags.iterations)}


def compiled_report(make, values, batch, flags):
    """torch.compile needs a C++ compiler, and does not take everything."""
    try:
        first = first_run(make, values, torch.compile, batch)
    except Exception as trouble:  # pylint: disable=broad-except  inductor raises what its parts raise
        return {"trouble": f"not measured: {(str(trouble).strip().splitlines() or [type(trouble).__name__])[0]}"}
    return side_report(*first, batch, flags)


def reports(text, flags):
    names, make = PEERS[module_name(flags.module)]
    values = {path: load_array(os.path.join(flags.inputs, f"{i}.npy"), type_name)
              for i, (path, type_name) in enumerate(entry_parameters(text))}
    batch = [value for path, value in values.items() if path.partition("/")[0] in names]
    return {"eager": side_report(*first_run(make, values, lambda network: network, batch), batch, flags),
            "compiled": compiled_report(make, values, batch, flags)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module")
    parser.add_argument("--inputs", required=True)
    parser.add_argument("--expected", required=True)
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--rel_error_bound", type=float)
    parser.add_argument("--abs_error_bound", type=float)
    flags = parser.parse_args()
    if module_name(flags.module) not in PEERS:
        print(json.dumps({}))
        return
    with open(flags.module, encoding="utf-8") as file:
        print(json.dumps(reports(file.read(), flags)))


if __name__ == "__main__":
    main()
