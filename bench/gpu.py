#!/usr/bin/env python3
"""Modules on hlorun and on XLA, on the same GPU, one after the other with the same inputs: times, and whether results agree.

    python3 bench/gpu.py [--hlorun PATH] [--flags "--autotune=off"] [--iterations N] DIR [NAME...]

DIR is what bench/export_xla.py wrote; NAME without its ending, all by default. A run's time is from its start until the host
knows that its results are there; they stay on the device. Needs numpy, ml_dtypes and a jax for the GPU; without one, XLA's
columns are empty. Ends with exit status 1 if results differ by more than 1 % of the largest value (integers: at all).
"""

import argparse
import glob
import os
import shlex
import subprocess
import sys
import tempfile
import time

import numpy as np

from runs import HLORUN, Failed, report

LARGEST_ERROR = 1e-2


def array_for(generator, shape, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return generator.integers(0, 4, shape).astype(dtype)
    if len(shape) < 2:  # variances among them
        return np.asarray(generator.random(shape, dtype=np.float32) + np.float32(0.5)).astype(dtype)
    deviation = max(0.02, float(np.prod(shape[:-1])) ** -0.5)
    return (generator.standard_normal(shape, dtype=np.float32) * np.float32(deviation)).astype(dtype)


def as_stored(array):
    return array.view("V2") if array.dtype.name == "bfloat16" else array


class Xla:
    """A program of jax.export on the default device."""

    def __init__(self, path):
        import jax
        from jax import export

        jax.config.update("jax_enable_x64", True)
        self.jax = jax
        with open(path, "rb") as file:
            self.exported = export.deserialize(file.read())

    def shapes(self):
        return [(a.shape, a.dtype) for a in self.exported.in_avals]

    def time(self, arrays, iterations):
        """Milliseconds of the best run, and the results."""
        jax = self.jax
        arguments = [jax.device_put(a) for a in arrays]
        program = jax.jit(self.exported.call).lower(*arguments).compile()
        results = jax.block_until_ready(program(*arguments))
        best = float("inf")
        for _ in range(iterations):
            begin = time.perf_counter()
            jax.block_until_ready(program(*arguments))
            best = min(best, time.perf_counter() - begin)
        return 1e3 * best, [np.asarray(r) for r in jax.tree_util.tree_leaves(results)]


def error_of(found, wanted):
    """The largest difference, as a share of the largest value; of integers, the share of elements that differ."""
    if found.dtype.kind == "V":
        found = found.view(wanted.dtype)
    if wanted.dtype.kind not in "fcV" and wanted.dtype.name != "bfloat16":
        return float(np.mean(found != wanted))
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    found, wanted = found.astype(wide), wanted.astype(wide)
    largest = float(np.max(np.abs(wanted), initial=0)) or 1.0
    return float(np.max(np.abs(found - wanted), initial=0)) / largest


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--hlorun", default=HLORUN)
    parser.add_argument("--flags", default="")
    parser.add_argument("--iterations", type=int, default=20)
    flags = parser.parse_args()
    names = flags.names or sorted(os.path.basename(p)[:-4] for p in glob.glob(os.path.join(flags.directory, "*.jax")))
    print(subprocess.run([flags.hlorun, "--list_devices"], capture_output=True, text=True, check=False).stdout.strip())
    print(f"{'module':34}{'hlorun ms':>11}{'XLA ms':>10}{'ratio':>7}{'TFLOP/s':>9}{'compile s':>10}{'tuned':>6}  error")
    status = 0
    for name in names:
        path = os.path.join(flags.directory, name)
        xla = Xla(path + ".jax")
        generator = np.random.default_rng(0)
        arrays = [array_for(generator, shape, dtype) for shape, dtype in xla.shapes()]
        with tempfile.TemporaryDirectory() as folder:
            for i, array in enumerate(arrays):
                np.save(os.path.join(folder, f"{i}.npy"), as_stored(array))
            try:
                ours = report(
                    [
                        flags.hlorun,
                        "--json",
                        f"--iterations={flags.iterations}",
                        f"--inputs={folder}",
                        f"--outputs={folder}/out",
                        *shlex.split(flags.flags),
                        path + ".hlo",
                    ]
                )
            except Failed as error:
                print(f"{name:34} {error}", flush=True)
                status = 1
                continue
            peer, error = None, None
            try:
                peer, wanted = xla.time(arrays, flags.iterations)
                found = [np.load(f"{folder}/out/{i}.npy") for i in range(len(wanted))]
                error = max((error_of(f, w) for f, w in zip(found, wanted)), default=0.0)
            except Exception as problem:  # XLA's own types
                print(f"{name}: XLA: {str(problem).strip().splitlines()[0][:100]}", file=sys.stderr)
        best, flops = ours["best_ms"], ours["flops"]
        columns = f"{peer:10.4f}{best / peer:7.2f}" if peer else f"{'':17}"
        print(
            f"{name[:33]:34}{best:11.4f}{columns}{flops / best / 1e9:9.2f}{ours['compile_s']:10.2f}"
            f"{ours['schedules_measured']:6}  {'' if error is None else f'{error:.1e}'}",
            flush=True,
        )
        status |= error is not None and not error <= LARGEST_ERROR
    sys.exit(status)


if __name__ == "__main__":
    main()
