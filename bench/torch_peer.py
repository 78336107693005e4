"""Modules on hlorun beside what PyTorch offers for the same work, in alternation: the ratio of their speeds in one run."""

import math
import os
import statistics
import tempfile
import time

import numpy as np
import torch

from runs import report

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "s8": torch.int8, "s32": torch.int32}


def save_array(path, tensor):
    """bf16 goes as its bits, as hlorun writes it."""
    tensor = tensor.contiguous()
    np.save(path, tensor.numpy() if tensor.dtype != torch.bfloat16 else tensor.view(torch.int16).numpy().view("V2"))


def load_array(path, type_name):
    array = np.load(path)
    return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16) if type_name == "bf16" else torch.from_numpy(array)


def rewritten(tensor):
    """The tensor in memory that one thread has just written, as hlorun's inputs are: what both cores wrote lies in the caches of
    both, and memory-bound work would read it in half the time."""
    if tensor.is_mkldnn:
        return tensor
    order = sorted(range(tensor.dim()), key=lambda d: -tensor.stride(d))
    dense = tensor.permute(order)
    if dense.dtype == torch.bfloat16:
        copy = torch.from_numpy(dense.view(torch.int16).numpy().copy()).view(torch.bfloat16)
    else:
        copy = torch.from_numpy(dense.numpy().copy())
    return copy.permute([order.index(d) for d in range(tensor.dim())])


def torch_report(run, batch, iterations):
    """Best and median of runs, as hlorun reports them, each on other values, written just before."""
    times = []
    for i in range(1, iterations + 1):
        fresh = [rewritten(tensor.roll(i)) for tensor in batch]
        start = time.perf_counter()
        run(*fresh)
        times.append((time.perf_counter() - start) * 1e3)
    return {"best_ms": min(times), "median_ms": statistics.median(times)}


class Way:
    """One way of PyTorch's. prepare(operands): what is made before the clock starts (other layouts, packed weights); run(prepared):
    the work."""

    def __init__(self, prepare, run):
        self.prepare, self.run = prepare, run


class Peer:
    """PyTorch on one piece of work: its ways that work, with their best times so far. `operands()` makes new values."""

    def __init__(self, ways, operands, queued=1):
        self.operands, self.queued, self.best, self.ways = operands, queued, {}, {}
        for name, way in ways.items():
            try:
                with torch.no_grad():
                    way.run(way.prepare(operands()))
                self.ways[name] = way
            except RuntimeError:
                pass  # this build, or these operands, do not have it

    def measure(self, seconds, at_least=3):
        for name, way in self.ways.items():
            with torch.no_grad():
                ms = self._milliseconds(way, seconds / len(self.ways), at_least)
            self.best[name] = min(self.best.get(name, math.inf), ms)

    def _milliseconds(self, way, seconds, at_least):
        """The best time of a run, over runs of new values."""
        sources, best, spent, count = [self.operands() for _ in range(2)], math.inf, 0.0, 0
        way.run(way.prepare(sources[0]))  # starts threads, makes what is kept
        while count < at_least or (spent < seconds and count < 100):
            prepared = [rewritten(x) for x in way.prepare(sources[count % 2])]
            start = time.perf_counter()
            for _ in range(self.queued):
                way.run(prepared)
            took = time.perf_counter() - start
            best, spent, count = min(best, took / self.queued), spent + took, count + 1
        return best * 1e3

    def fastest(self):
        return min(self.best, key=self.best.get)


class Ours:
    """hlorun on the same work, its last result compared in each round with what `expected(inputs)` makes of the same inputs.
    `queued`: runs that are timed together; `constant`: parameters that are the same in all runs."""

    def __init__(self, flags, folder, module, types, expected, iterations, queued=1, constant=(), more=()):
        self.module, self.best = os.path.join(folder, "module.hlo"), math.inf
        self.expected = os.path.join(folder, "expected")
        self.runs = ["--vary_inputs", f"--iterations={iterations}", f"--queued={queued}"]
        self.command = [flags.hlorun, "--json", *([f"--device={flags.device}"] if flags.device else []), *more]
        if constant:
            self.command.append(f"--constant_params={','.join(map(str, constant))}")
        with open(self.module, "w", encoding="utf-8") as file:
            file.write(module)
        # With --vary_inputs iteration i (from 1) has seed i; constant parameters keep those of seed 0.
        last, first = self._inputs(folder, iterations, types), self._inputs(folder, 0, types) if constant else []
        os.makedirs(self.expected)
        save_array(os.path.join(self.expected, "0.npy"), expected(*[first[i] if i in constant else x for i, x in enumerate(last)]))

    def _inputs(self, folder, seed, types):
        to = os.path.join(folder, f"inputs{seed}")
        report([*self.command, f"--save_inputs={to}", f"--seed={seed}", "--iterations=1", self.module])
        return [load_array(os.path.join(to, f"{i}.npy"), name) for i, name in enumerate(types)]

    def measure(self):
        self.best = min(self.best, report([*self.command, *self.runs, f"--expect={self.expected}", self.module])["best_ms"])


def compare(flags, peer, make_ours):
    """The best times of both sides over the rounds, and PyTorch's fastest way. make_ours(folder, iterations) -> Ours."""
    with tempfile.TemporaryDirectory() as folder:
        peer.measure(0.0)
        estimate = peer.best[peer.fastest()] * peer.queued
        ours = make_ours(folder, int(min(max(flags.seconds * 1e3 / max(estimate, 1e-3), 3), 40)))
        for _ in range(flags.rounds):
            peer.measure(flags.seconds)
            ours.measure()
    way = peer.fastest()
    return {"hlorun_ms": ours.best, "torch_ms": peer.best[way], "torch_way": way, "ratio": peer.best[way] / ours.best,
            "queued": peer.queued}


def geometric_mean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values))


def selection_arguments(parser, families):
    parser.add_argument("--only", default=",".join(families), help="families, by commas")
    parser.add_argument("--match", default="", help="only rows whose source or sizes contain one of these, by commas")
    parser.add_argument("--part", default="1/1", help="I/N: every N-th row")
    parser.add_argument("--seconds", type=float, default=0.25, help="of each side in a round")
    parser.add_argument("--queued", type=int, default=100, help="runs timed together where there is little work")
    parser.add_argument("--device")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--least", type=float, default=0.0, help="of a ratio; else exit code 1")
    parser.add_argument("--least_mean", type=float, default=0.0)


def table(flags, families, measure, name, small=0.0):
    """Rows of all chosen pieces of work, printed family by family. measure(work) -> row; `small`: GFLOP below which a row does not
    count as the worst. Returns the rows, and whether one is below what flags ask."""
    rows, failed = [], False
    part, parts = (int(i) for i in flags.part.split("/"))
    for family in flags.only.split(","):
        matching = [work for work in families[family] if any(m in work.source or m in work.label for m in flags.match.split(","))]
        chosen = matching[part - 1::parts]
        if not chosen:
            continue
        print(f"{family}\n{'source':<34} {name:<44} {'hlorun ms':>10} {'torch ms':>10} {'way':>14} {'GFLOP/s':>8} {'ratio':>6}")
        family_rows = []
        for work in chosen:
            row = {"family": family, "source": work.source, name: work.label, "gflop": work.gflop, **measure(work)}
            family_rows.append(row)
            print(f"{row['source']:<34} {row[name]:<44} {row['hlorun_ms']:>10.4f} {row['torch_ms']:>10.4f} {row['torch_way']:>14} "
                  f"{row['gflop'] / row['hlorun_ms'] * 1e3:>8.1f} {row['ratio']:>6.2f}", flush=True)
        mean = geometric_mean([row["ratio"] for row in family_rows])
        worst = min([row for row in family_rows if row["gflop"] >= small] or family_rows, key=lambda row: row["ratio"])
        print(f"{family}: geometric mean {mean:.2f}; worst {worst['ratio']:.2f} ({worst[name]})")
        failed |= mean < flags.least_mean or worst["ratio"] < flags.least
        rows += family_rows
    return rows, failed
