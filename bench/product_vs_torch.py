#!/usr/bin/env python3
"""An HLO dot of N^3 f32 on hlorun beside PyTorch's matmul, in alternation: the ratio of their speeds in one run.

    python3 bench/product_vs_torch.py [--hlorun build/bin/hlorun] [--size 1024] [--rounds 5] [--iterations 20] [--device D]

Inputs change from iteration to iteration on both sides; hlorun's last result of each round is compared with PyTorch's product of
the same arrays. Needs torch and numpy. Prints each round and the ratio of the best times; exits 1 below --least. Where other work
shares the machine, --cpu_time says what both spend in processor time, which that disturbs less.
"""
import os
import sys
import tempfile
import time

import numpy as np
import torch

from runs import arguments, cpu, timed_report

MODULE = """HloModule product
ENTRY main {{
  x = f32[{0},{0}] parameter(0)
  y = f32[{0},{0}] parameter(1)
  ROOT z = f32[{0},{0}] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
"""


def hlorun(flags, folder, *more):
    """The report, and the processor seconds that it took."""
    device = [f"--device={flags.device}"] if flags.device else []
    return timed_report([flags.hlorun, "--json", *device, *more, os.path.join(folder, "product.hlo")])


def torch_times(size, iterations):
    """Milliseconds of each iteration, each on new arrays."""
    times = []
    for _ in range(iterations + 1):
        x, y = torch.randn(size, size), torch.randn(size, size)
        start = time.perf_counter()
        torch.mm(x, y)
        times.append((time.perf_counter() - start) * 1e3)
    return times[1:]  # the first starts its threads


def cpu_ms_of_torch(size, iterations):
    x, y = torch.randn(size, size), torch.randn(size, size)
    torch.mm(x, y)
    start = time.process_time()
    for _ in range(iterations):
        torch.mm(x, y)
    return (time.process_time() - start) * 1e3 / iterations


def cpu_ms_of_hlorun(flags, folder, iterations):
    """From two runs of different length: what compiling and the inputs cost drops out."""
    short, long = (hlorun(flags, folder, f"--iterations={count}")[1] for count in (iterations, 5 * iterations))
    return (long - short) * 1e3 / (4 * iterations)


def main():
    parser = arguments(__doc__, rounds=5, iterations=20)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--device")
    parser.add_argument("--cpu_time", action="store_true")
    parser.add_argument("--least", type=float, default=0.0)
    flags = parser.parse_args()
    print(f"{cpu()}; torch {torch.__version__}, {torch.get_num_threads()} threads")
    ours, theirs, gflop = [], [], 2e-9 * flags.size ** 3
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "product.hlo"), "w", encoding="utf-8") as file:
            file.write(MODULE.format(flags.size))
        inputs, expected = os.path.join(folder, "inputs"), os.path.join(folder, "expected")
        hlorun(flags, folder, f"--save_inputs={inputs}", f"--seed={flags.iterations}")
        x, y = (torch.from_numpy(np.load(os.path.join(inputs, f"{i}.npy"))) for i in (0, 1))
        os.makedirs(expected)
        np.save(os.path.join(expected, "0.npy"), torch.mm(x, y).numpy())
        for _ in range(flags.rounds):
            theirs.append(min(torch_times(flags.size, flags.iterations)))
            ours.append(hlorun(flags, folder, "--vary_inputs", f"--iterations={flags.iterations}", f"--expect={expected}")[0]["best_ms"])
            print(f"  hlorun {ours[-1]:8.3f} ms {gflop / ours[-1] * 1e3:7.1f} GFLOP/s; torch {theirs[-1]:8.3f} ms "
                  f"{gflop / theirs[-1] * 1e3:7.1f} GFLOP/s; ratio {theirs[-1] / ours[-1]:.2f}", flush=True)
        if flags.cpu_time:
            pairs = [(cpu_ms_of_hlorun(flags, folder, flags.iterations), cpu_ms_of_torch(flags.size, flags.iterations))
                     for _ in range(flags.rounds)]
            mine, peer = (min(column) for column in zip(*pairs))
            print(f"processor time: hlorun {mine:.3f} ms, torch {peer:.3f} ms, ratio {peer / mine:.2f}")
    ratio = min(theirs) / min(ours)
    print(f"f32 {flags.size}^3: hlorun at {ratio:.2f} of PyTorch's speed (best of {flags.rounds} rounds each)")
    return 1 if ratio < flags.least else 0


if __name__ == "__main__":
    sys.exit(main())
