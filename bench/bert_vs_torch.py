#!/usr/bin/env python3
"""BERT-base's encoder (bench/bert.py; 8 sentences of up to 128 words, f32) on hlorun beside PyTorch, eager and compiled, in alternation.

    python3 bench/bert_vs_torch.py [--keep FOLDER] [--rounds 5] [--iterations 5] [--constant] [--device D] [--json FILE] [--most RATIO]

The module is exported by scripts/export_torch.py, into --keep where it is not there yet. Each round has other sentences, and
hlorun's result is compared with PyTorch's of the same. --constant: weights that do not change, for both (hlorun's
--constant_params, inductor's freezing); else either packs them in each run as it likes. Ratios are hlorun's time over torch.compile's:
below 1 hlorun is faster. Exits 1 above --most. Needs torch==2.13.0 torchax==0.0.13 jax==0.10.2.
"""
import os
import statistics
import sys
import tempfile
import time

import numpy as np
import torch

import bert
from runs import HERE, arguments, cpu, report, run, save_rows

BATCH_ARGUMENTS = 3  # the last parameters


def exported(folder):
    """FOLDER/module.hlo and FOLDER/inputs, weights first."""
    if not os.path.exists(os.path.join(folder, "module.hlo")):
        # In a process of its own: torchax stays in the way of torch.compile.
        run([sys.executable, os.path.join(HERE, "..", "scripts", "export_torch.py"), os.path.join(HERE, "bert.py") + ":make", "-o", folder])
    return len(os.listdir(os.path.join(folder, "inputs")))


def write_batch(folder, count, batch, expected):
    for i, tensor in enumerate(batch):
        np.save(os.path.join(folder, "inputs", f"{count - BATCH_ARGUMENTS + i}.npy"), tensor.numpy())
    np.save(os.path.join(folder, "expected", "0.npy"), expected.numpy())


def milliseconds(model, batch, iterations):
    times = []
    for _ in range(iterations):
        start = time.perf_counter()
        model(*batch)
        times.append((time.perf_counter() - start) * 1e3)
    return times


def measure(flags, folder):
    count = exported(folder)
    model, batch = bert.make()
    command = [flags.hlorun, "--json", f"--inputs={folder}/inputs", f"--expect={folder}/expected", f"--iterations={flags.iterations}",
               *([f"--device={flags.device}"] if flags.device else []),
               *([f"--constant_params=0-{count - BATCH_ARGUMENTS - 1}"] if flags.constant else []), f"{folder}/module.hlo"]
    if flags.constant:
        import torch._inductor.config as inductor  # pylint: disable=import-outside-toplevel
        inductor.freezing = True
    with torch.no_grad():
        compiled = torch.compile(model)
        compiled(*batch)
        rows = []
        for number in range(flags.rounds):
            batch = bert.arguments(number + 1)
            write_batch(folder, count, batch, model(*batch))
            row = {"eager": milliseconds(model, batch, flags.iterations), "compiled": milliseconds(compiled, batch, flags.iterations)}
            ours = report(command)
            rows.append({"hlorun_ms": ours["median_ms"], "eager_ms": statistics.median(row["eager"]),
                         "compiled_ms": statistics.median(row["compiled"]), "compile_s": ours["compile_s"]})
            rows[-1]["ratio"] = rows[-1]["hlorun_ms"] / rows[-1]["compiled_ms"]
            print(f"{number:5} {rows[-1]['hlorun_ms']:10.1f} {rows[-1]['eager_ms']:10.1f} {rows[-1]['compiled_ms']:13.1f} "
                  f"{rows[-1]['ratio']:6.2f}", flush=True)
    return rows


def main():
    parser = arguments(__doc__, rounds=5, iterations=5)
    parser.add_argument("--keep")
    parser.add_argument("--constant", action="store_true")
    parser.add_argument("--device")
    parser.add_argument("--json")
    parser.add_argument("--most", type=float)
    flags = parser.parse_args()
    print(f"{cpu()}; torch {torch.__version__}, {torch.get_num_threads()} threads")
    print(f"{'round':>5} {'hlorun ms':>10} {'eager ms':>10} {'compiled ms':>13} {'ratio':>6}")
    if flags.keep:
        os.makedirs(flags.keep, exist_ok=True)
        rows = measure(flags, flags.keep)
    else:
        with tempfile.TemporaryDirectory() as folder:
            rows = measure(flags, folder)
    ratios = [row["ratio"] for row in rows]
    print(f"median {statistics.median(ratios):.2f}, spread {max(ratios) / min(ratios):.2f}")
    if flags.json:
        save_rows(flags.json, rows)
    return 1 if flags.most and statistics.median(ratios) > flags.most else 0


if __name__ == "__main__":
    sys.exit(main())
