#!/usr/bin/env python3
"""HLO dots on hlorun beside PyTorch, in alternation: the ratio of their speeds in one run.

    python3 bench/products_vs_torch.py [--only squares,skewed,bf16,s8] [--match TEXT] [--part I/N] [--json FILE]

PyTorch's time is that of its fastest way: torch.mm (bmm with a batch), torch.nn.functional.linear, and oneDNN's linear where it
takes the operands; torch._int_mm for s8. Operands change from run to run, each written just before by one thread, and both sides
pack what they pack within the time measured: weights count as parameters. Below 50 MFLOP, --queued runs (100) are timed together.
hlorun's last result of each round is compared with PyTorch's. Needs torch and numpy. Ratios above 1: hlorun is faster. Exits 1
below --least_mean, or when a product of 50 MFLOP or more is below --least.
"""
import sys

import torch

from product_shapes import FAMILIES, Product
from runs import arguments, cpu, save_rows
from torch_peer import TYPES, Ours, Peer, Way, compare, selection_arguments, table

SMALL = 0.05  # GFLOP
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


def turned(product: Product, x, y):
    """The stored operands as a [m, k] and a [k, n] matrix."""
    return (x.mT if product.form[0] == "t" else x), (y.mT if product.form[1] == "t" else y)


def ways(product: Product):
    def way(multiply):
        return Way(lambda operands: operands, lambda operands: multiply(*turned(product, *operands)))

    if product.type == "s8":
        return {"_int_mm": way(torch._int_mm)}
    if product.batch:
        return {"bmm": way(torch.bmm)}
    return {"mm": way(torch.mm), "linear": way(lambda x, y: torch.nn.functional.linear(x, y.mT)),
            "oneDNN": way(lambda x, y: torch.ops.mkldnn._linear_pointwise(x, y.mT, None, "none", [], ""))}


def expected(product: Product, x, y):
    x, y = turned(product, x, y)
    return torch._int_mm(x, y) if product.type == "s8" else torch.matmul(x.float(), y.float()).to(TYPES[product.type])


def main():
    parser = arguments(__doc__, rounds=3)
    selection_arguments(parser, FAMILIES)
    flags = parser.parse_args()
    print(f"{cpu()}; torch {torch.__version__}, {torch.get_num_threads()} threads")

    def measure(product):
        queued = flags.queued if product.gflop < SMALL else 1
        values = ["--normal=0,1", *(["--integers=100"] if product.type == "s8" else [])]

        def ours(folder, iterations):
            return Ours(flags, folder, module(product), [product.type] * 2, lambda x, y: expected(product, x, y), iterations, queued,
                        more=values)

        return compare(flags, Peer(ways(product), lambda: stored_operands(product), queued), ours)

    rows, failed = table(flags, FAMILIES, measure, "product", SMALL)
    if flags.json:
        save_rows(flags.json, rows)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
