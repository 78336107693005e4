#!/usr/bin/env python3
"""Memory-bound programs over f32 of 64 MiB as a share of the memory bandwidth that was measured in the same run.

    python3 bench/bandwidth.py [--hlorun build/bin/hlorun] [--roofline build/bin/roofline] [--rounds 5] [--iterations 5] [--json FILE] [NAME ...]

A program's bytes are those of its arguments and results, each moved once. Its roof is the fastest plain kernel with the same mix of reads
and writes: of bench/streams.c's, where there is a C compiler, PyTorch's and NumPy's on all cores and, for copies, build/bin/roofline's
where it is built. Like hlorun's inputs, what a roof reads was written just before by one thread; what it writes to, it wrote before.
A share above 1 says that the roof is too low, not that the program is that good.
Shares: best time beside the best roof, and the median of rounds beside the fastest kernel's median in the same round. Exits 1 where a
median share is below --least. Needs torch and numpy.
"""
import concurrent.futures
import ctypes
import os
import statistics
import sys
import tempfile
import time

import numpy as np
import torch

from runs import HERE, ROOFLINE, Failed, arguments, chosen, cpu, device_spec, report, run, save_rows, seeded

MIB = 1 << 20
SHAPE = (4096, 4096)
# name: (parameters that are data, MiB read, MiB written, roof)
PROGRAMS = {
    "scale": ("0", 64, 64, "copy"),
    "add": ("0,1", 128, 64, "add"),
    "sum_all": ("0", 64, 0, "read"),
    "sum_rows": ("0", 64, 0, "read"),
    "sum_columns": ("0", 64, 0, "read"),
    "softmax": ("0", 64, 64, "copy"),
    "layer_norm": ("0", 64, 64, "copy"),
    "rms_norm": ("0", 64, 64, "copy"),
}
AIM = 0.85


def aligned(values):
    """A copy, written by this thread, that starts with a line of the caches; NumPy's and PyTorch's own need not."""
    memory = np.zeros(values.size + 16, np.float32)
    start = -memory.ctypes.data // 4 % 16
    copy = memory[start:start + values.size].reshape(values.shape)
    copy[:] = values
    return copy


def streams():
    """bench/streams.c as {name: function of arrays}; none where it does not compile."""
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "streams.so")
        try:
            run(["cc", "-O3", "-march=native", "-shared", "-fPIC", "-o", library, os.path.join(HERE, "streams.c")])
        except (Failed, OSError) as trouble:
            print(f"bench/streams.c: not measured: {trouble}")
            return {}
        code = ctypes.CDLL(library)

    def call(function, *arrays):
        function(*(ctypes.c_void_p(array.ctypes.data) for array in arrays), ctypes.c_size_t(arrays[0].size))

    return {name: lambda *arrays, name=name: call(code[name], *arrays) for name in ("stream_copy", "stream_add", "stream_sum")}


def kernels(pool):
    """roof: (MiB moved, arrays read, {name: function of the arrays read (tensors) and of one to write})."""
    def halves(work, *tensors):
        """NumPy and ctypes let go of the interpreter's lock: a thread for each core."""
        parts = zip(*(np.array_split(tensor.numpy().reshape(-1), torch.get_num_threads()) for tensor in tensors))
        list(pool.map(lambda part: work(*part), parts))

    known = {
        "copy": (128, 1, {"torch copy_": lambda x, to: to.copy_(x), "torch mul": lambda x, to: torch.mul(x, 0.5, out=to),
                          "memcpy": lambda x, to: halves(lambda a, b: np.copyto(b, a), x, to)}),
        "add": (192, 2, {"torch add": lambda x, y, to: torch.add(x, y, out=to),
                         "numpy add": lambda x, y, to: halves(lambda a, b, c: np.add(a, b, out=c), x, y, to)}),
        "read": (64, 1, {"torch sum": lambda x, to: x.sum(), "torch dot": lambda x, to: torch.dot(x.view(-1), x.view(-1)),
                         "torch max": lambda x, to: x.amax(), "numpy max": lambda x, to: halves(np.max, x)}),
    }
    for name, function in streams().items():
        roof = {"stream_copy": "copy", "stream_add": "add", "stream_sum": "read"}[name]
        known[roof][2][name] = lambda *tensors, function=function: halves(function, *tensors)
    return known


class Roofs:
    """GB/s of each roof: `best` over all rounds, and `rounds`, each the median of that round's fastest kernel."""

    def __init__(self, flags, pool):
        self.flags, self.kernels = flags, kernels(pool)
        self.best, self.rounds = {}, {name: [] for name in self.kernels}
        self.sources = [np.random.default_rng(i).standard_normal(SHAPE, np.float32) for i in range(2)]
        self.to = torch.from_numpy(aligned(np.zeros(SHAPE, np.float32)))

    def _times(self, kernel, reads):
        times = []
        for _ in range(self.flags.iterations + 1):
            fresh = [torch.from_numpy(aligned(source)) for source in self.sources[:reads]]
            start = time.perf_counter()
            kernel(*fresh, self.to)
            times.append(time.perf_counter() - start)
        return times[1:]

    def measure(self):
        for roof, (mib, reads, known) in self.kernels.items():
            medians = []
            for name, kernel in known.items():
                times = self._times(kernel, reads)
                medians.append(mib * MIB / statistics.median(times) / 1e9)
                self._keep(roof, mib * MIB / min(times) / 1e9, name)
            self.rounds[roof].append(max(medians))
        if os.path.exists(self.flags.roofline):
            self._keep("copy", device_spec(self.flags.roofline, self.flags.device or "")["bandwidth_gbps"], "roofline")

    def _keep(self, roof, gbps, name):
        self.best[roof] = max(self.best.get(roof, (0.0, "")), (gbps, name))


def measure(name, flags):
    spec = os.path.join(HERE, "modules", name + ".hlo") + ":" + PROGRAMS[name][0]
    return report([flags.hlorun, "--json", "--vary_inputs", f"--iterations={flags.iterations}", *seeded(spec),
                   *([f"--device={flags.device}"] if flags.device else [])])


def row_of(name, reports, roofs):
    _, read, written, roof = PROGRAMS[name]
    moved = (read + written) * MIB / 1e6  # per ms: GB/s
    best, kernel = roofs.best[roof]
    shares = [moved / r["median_ms"] / gbps for r, gbps in zip(reports, roofs.rounds[roof])]
    row = {"program": name, "best_ms": min(r["best_ms"] for r in reports), "median_ms": statistics.median(r["median_ms"] for r in reports)}
    return {**row, "best_gbps": moved / row["best_ms"], "median_gbps": moved / row["median_ms"], "roof": roof, "roof_gbps": best,
            "roof_kernel": kernel, "roof_median_gbps": statistics.median(roofs.rounds[roof]), "best_share": moved / row["best_ms"] / best,
            "median_share": statistics.median(shares), "shares": shares}


def print_row(row):
    print(f"{row['program']:12} {row['best_ms']:8.2f} {row['median_ms']:8.2f} {row['best_gbps']:7.1f} {row['median_gbps']:7.1f} "
          f"{row['roof'] + ', ' + row['roof_kernel']:>20} {row['roof_gbps']:7.1f} {row['roof_median_gbps']:7.1f} {row['best_share']:6.2f} "
          f"{row['median_share']:6.2f} {'met' if row['median_share'] >= AIM else 'MISSED'}")


def main():
    parser = arguments(__doc__, rounds=5, iterations=5)
    parser.add_argument("--roofline", default=ROOFLINE)
    parser.add_argument("--device")
    parser.add_argument("--json")
    parser.add_argument("--least", type=float, default=0.0)
    parser.add_argument("names", nargs="*")
    flags = parser.parse_args()
    names = chosen(parser, flags.names, PROGRAMS)
    print(f"{cpu()}; torch {torch.__version__}, {torch.get_num_threads()} threads; aim {AIM} of the roof, by medians")
    if not os.path.exists(flags.roofline):
        print(f"roofline: not measured, there is no {flags.roofline}")
    reports = {name: [] for name in names}
    with concurrent.futures.ThreadPoolExecutor(torch.get_num_threads()) as pool:
        roofs = Roofs(flags, pool)
        for _ in range(flags.rounds):
            roofs.measure()
            for name in names:
                reports[name].append(measure(name, flags))
    print(f"{'':12} {'best ms':>8} {'median':>8} {'GB/s':>7} {'median':>7} {'roof':>20} {'GB/s':>7} {'median':>7} {'share':>6} {'median':>6}")
    rows = [row_of(name, reports[name], roofs) for name in names]
    for row in rows:
        print_row(row)
    if flags.json:
        save_rows(flags.json, rows)
    return 1 if any(row["median_share"] < flags.least for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
