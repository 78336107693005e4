#!/usr/bin/env python3
"""HLO dots on hlorun beside PyTorch, in alternation: the ratio of their speeds in one run.

    python3 bench/products_vs_torch.py [--only squares,skewed,bf16,s8] [--match TEXT] [--part I/N] [--json FILE]

PyTorch's time is that of its fastest way: torch.mm (bmm with a batch), torch.nn.functional.linear, and oneDNN's linear where it
takes the operands; torch._int_mm for s8. Both sides get new arrays of new values for each run, and pack what they pack within
the time measured: weights count as parameters. Below 50 MFLOP, --queued runs (100) are timed together. hlorun's last result of each
round is compared with PyTorch's. Needs torch and numpy. Ratios above 1: hlorun is faster. Exits 1 below --least_mean, or when a
product of 50 MFLOP or more is below --least.
"""
import math
import os
import sys
import tempfile
import time

import numpy as np
import torch

from product_shapes import FAMILIES, Product
from runs import arguments, cpu, save_rows, timed_report

SMALL = 0.05  # GFLOP
SECONDS = 0.25  # of each side in a round, about
TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "s8": torch.int8}
RESULTS = {"f32": "f32", "bf16": "bf16", "s8": "s32"}


def module(product: Product):
    batch, first = (f"{product.batch},", 1) if product.batch else ("", 0)
    stored = [f"{product.k},{product.m}" if product.form[0] == "t" else f"{product.m},{product.k}",
              f"{product.n},{product.k}" if product.form[1] == "t" else f"{product.k},{product.n}"]
    sides = [first + (0 if product.form[0] == "t" else 1), first + (1 if product.form[1] == "t" else 0)]
    batches = "lhs_batch_dims={0}, rhs_batch_dims={0}, " if product.batch else ""
    return (f"HloModule product\nENTRY main {{\n  x = {product.type}[{batch}{stored[0]}] parameter(0)\n"
            f"  y = {product.type}[{batch}{stored[1]}] parameter(1)\n"
            f"  ROOT z = {RESULTS[product.type]}[{batch}{product.m},{product.n}] dot(x, y), {batches}"
            f"lhs_contracting_dims={{{sides[0]}}}, rhs_contracting_dims={{{sides[1]}}}\n}}\n")


def stored_operands(product: Product):
    """Arrays as they lie, of the kind that hlorun makes up."""
    batch = [product.batch] if product.batch else []
    sizes = [[product.k, product.m] if product.form[0] == "t" else [product.m, product.k],
             [product.n, product.k] if product.form[1] == "t" else [product.k, product.n]]
    if product.type == "s8":
        return [torch.randint(-128, 128, batch + size, dtype=torch.int8) for size in sizes]
    return [torch.randn(batch + size).to(TYPES[product.type]) for size in sizes]


def ways(product: Product):
    """What PyTorch offers, by name: each a function of the stored operands."""
    lhs = (lambda x: x.mT) if product.form[0] == "t" else (lambda x: x)
    rhs = (lambda y: y.mT) if product.form[1] == "t" else (lambda y: y)
    if product.type == "s8":
        return {"_int_mm": lambda x, y: torch._int_mm(lhs(x), rhs(y))}
    if product.batch:
        return {"bmm": lambda x, y: torch.bmm(lhs(x), rhs(y))}
    return {
        "mm": lambda x, y: torch.mm(lhs(x), rhs(y)),
        "linear": lambda x, y: torch.nn.functional.linear(lhs(x), rhs(y).mT),
        "oneDNN": lambda x, y: torch.ops.mkldnn._linear_pointwise(lhs(x), rhs(y).mT, None, "none", [], ""),
    }


def torch_ms(way, product: Product, queued, seconds):
    """The best time of a run, over runs on new arrays."""
    best, spent, count = math.inf, 0.0, 0
    way(*stored_operands(product))  # starts threads, makes what is kept
    while count < 3 or (spent < seconds and count < 100):
        operands = stored_operands(product)
        start = time.perf_counter()
        for _ in range(queued):
            way(*operands)
        took = time.perf_counter() - start
        best, spent, count = min(best, took / queued), spent + took, count + 1
    return best * 1e3


class Peer:
    """PyTorch on one product: its ways that work, with their best times so far."""

    def __init__(self, product: Product, queued):
        self.product, self.queued, self.best = product, queued, {}
        self.ways = {}
        for name, way in ways(product).items():
            try:
                with torch.no_grad():
                    way(*stored_operands(product))
                self.ways[name] = way
            except RuntimeError:
                pass  # this build, or these operands, do not have it

    def measure(self, seconds):
        for name, way in self.ways.items():
            with torch.no_grad():
                ms = torch_ms(way, self.product, self.queued, seconds / len(self.ways))
            self.best[name] = min(self.best.get(name, math.inf), ms)

    def fastest(self):
        return min(self.best, key=self.best.get)


def save_array(path, tensor):
    """bf16 goes as its bits, as hlorun writes it."""
    np.save(path, tensor.numpy() if tensor.dtype != torch.bfloat16 else tensor.view(torch.int16).numpy().view("V2"))


def load_array(path, product: Product):
    array = np.load(path)
    return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16) if product.type == "bf16" else torch.from_numpy(array)


class Ours:
    """hlorun on one product, its results compared with those that PyTorch makes of the last iteration's inputs."""

    def __init__(self, flags, product: Product, folder, queued, iterations):
        self.command = [flags.hlorun, "--json", *([f"--device={flags.device}"] if flags.device else [])]
        self.module = os.path.join(folder, "product.hlo")
        with open(self.module, "w", encoding="utf-8") as file:
            file.write(module(product))
        inputs, self.expected = os.path.join(folder, "inputs"), os.path.join(folder, "expected")
        integers = ["--integers=100"] if product.type == "s8" else []
        self.flags = ["--vary_inputs", f"--iterations={iterations}", f"--queued={queued}", "--normal=0,1", *integers]
        timed_report([*self.command, f"--save_inputs={inputs}", f"--seed={iterations}", "--iterations=1", "--normal=0,1", *integers,
                      self.module])
        x, y = (load_array(os.path.join(inputs, f"{i}.npy"), product) for i in (0, 1))
        x, y = (x.mT if product.form[0] == "t" else x), (y.mT if product.form[1] == "t" else y)
        wide = torch.float32 if product.type == "bf16" else TYPES[product.type]
        result = torch._int_mm(x, y) if product.type == "s8" else torch.matmul(x.to(wide), y.to(wide)).to(TYPES[product.type])
        os.makedirs(self.expected)
        save_array(os.path.join(self.expected, "0.npy"), result)
        self.best = math.inf

    def measure(self):
        report = timed_report([*self.command, *self.flags, f"--expect={self.expected}", self.module])[0]
        self.best = min(self.best, report["best_ms"])


def compare(flags, product: Product):
    queued = flags.queued if product.gflop < SMALL else 1
    with tempfile.TemporaryDirectory() as folder:
        peer = Peer(product, queued)
        peer.measure(0.0)
        estimate = peer.best[peer.fastest()] * queued
        iterations = int(min(max(flags.seconds * 1e3 / max(estimate, 1e-3), 3), 40))
        ours = Ours(flags, product, folder, queued, iterations)
        for _ in range(flags.rounds):
            peer.measure(flags.seconds)
            ours.measure()
    way = peer.fastest()
    return {"source": product.source, "product": product.label, "gflop": product.gflop, "hlorun_ms": ours.best,
            "torch_ms": peer.best[way], "torch_way": way, "ratio": peer.best[way] / ours.best, "queued": queued}


def geometric_mean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values))


def main():
    parser = arguments(__doc__, rounds=3)
    parser.add_argument("--only", default=",".join(FAMILIES), help="families, by commas")
    parser.add_argument("--match", default="", help="only products whose source or sizes contain one of these, by commas")
    parser.add_argument("--part", default="1/1", help="I/N: every N-th product")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each side in a round")
    parser.add_argument("--queued", type=int, default=100, help="runs timed together below 50 MFLOP")
    parser.add_argument("--device")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--least", type=float, default=0.0)
    parser.add_argument("--least_mean", type=float, default=0.0)
    flags = parser.parse_args()
    print(f"{cpu()}; torch {torch.__version__}, {torch.get_num_threads()} threads")
    rows, failed = [], False
    part, parts = (int(i) for i in flags.part.split("/"))
    for family in flags.only.split(","):
        chosen = [p for p in FAMILIES[family] if any(m in p.source or m in p.label for m in flags.match.split(","))][part - 1::parts]
        if not chosen:
            continue
        print(f"{family}\n{'source':<34} {'product':<28} {'hlorun ms':>10} {'torch ms':>10} {'way':>8} {'GFLOP/s':>8} {'ratio':>6}")
        family_rows = []
        for product in chosen:
            row = {"family": family, **compare(flags, product)}
            family_rows.append(row)
            print(f"{row['source']:<34} {row['product']:<28} {row['hlorun_ms']:>10.4f} {row['torch_ms']:>10.4f} {row['torch_way']:>8} "
                  f"{row['gflop'] / row['hlorun_ms'] * 1e3:>8.1f} {row['ratio']:>6.2f}", flush=True)
        mean = geometric_mean([row["ratio"] for row in family_rows])
        large = [row for row in family_rows if row["gflop"] >= SMALL] or family_rows
        worst = min(large, key=lambda row: row["ratio"])
        print(f"{family}: geometric mean {mean:.2f}; worst of 50 MFLOP and more {worst['ratio']:.2f} ({worst['product']})")
        failed |= mean < flags.least_mean or worst["ratio"] < flags.least
        rows += family_rows
    if flags.json:
        save_rows(flags.json, rows)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
