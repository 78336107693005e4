#!/usr/bin/env python3
"""Speed of N ranks against one rank on the same cores, as a table (and a plot where matplotlib is).

  bench/scaling/scaling.py [--ranks=2] [--rounds=7] [--only=NAME,..] [--times=FILE] [--build=build] [--plot=FILE.png]

Rounds alternate: one rank on all cores (--bind-to none), then N ranks that share them. Strong scaling runs the same module
on both; weak scaling gives N ranks N times the batch. Efficiency is the time of one rank over that of N: both use the
same cores, so 1.0 is all there is to have, and what is missing is exchange and waiting. Both are shares of a run in which
every step is waited for (--trace), means over the ranks: a rank waits from when it comes to a collective until the last one
does, and exchanges from then on. Pairs that run beside kernels in other runs count here as if nothing hid them.

--times keeps each round in FILE: a run that was cut short goes on where it was, so that all can be measured in pieces.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "bench"), os.path.join(ROOT, "scripts", "lib")]
from launcher import mpirun  # noqa: E402  found through the path above
from runs import report  # noqa: E402


def training(batch):
    """A step of gradient descent for two dense layers: data-parallel."""
    b, d, h = batch, 512, 1024
    return f"""HloModule training
sum {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }}
ENTRY main {{
  w1 = f32[{d},{h}] parameter(0)
  w2 = f32[{h},{d}] parameter(1)
  x = f32[{b},{d}] parameter(2)
  y = f32[{b},{d}] parameter(3)
  a = f32[{b},{h}] dot(x, w1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  t = f32[{b},{h}] tanh(a)
  p = f32[{b},{d}] dot(t, w2), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  e = f32[{b},{d}] subtract(p, y)
  rate = f32[] constant(0.001)
  rates = f32[{b},{d}] broadcast(rate), dimensions={{}}
  de = f32[{b},{d}] multiply(e, rates)
  dw2 = f32[{h},{d}] dot(t, de), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  dt = f32[{b},{h}] dot(de, w2), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
  one = f32[] constant(1)
  ones = f32[{b},{h}] broadcast(one), dimensions={{}}
  tt = f32[{b},{h}] multiply(t, t)
  slope = f32[{b},{h}] subtract(ones, tt)
  da = f32[{b},{h}] multiply(dt, slope)
  dw1 = f32[{d},{h}] dot(x, da), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  n1 = f32[{d},{h}] subtract(w1, dw1)
  n2 = f32[{h},{d}] subtract(w2, dw2)
  ROOT r = (f32[{d},{h}], f32[{h},{d}]) tuple(n1, n2)
}}
"""


def transformer(ranks):
    """The dense part of a block, its weights cut: tensor-parallel, one all-reduce a pair of products."""
    s, d, h = 512, 768, 3072
    return f"""HloModule transformer, num_partitions={ranks}
ENTRY main {{
  x = f32[{s},{d}] parameter(0), sharding={{replicated}}
  w1 = f32[{d},{h}] parameter(1), sharding={{devices=[1,{ranks}]<=[{ranks}]}}
  w2 = f32[{h},{d}] parameter(2), sharding={{devices=[{ranks},1]<=[{ranks}]}}
  a = f32[{s},{h}] dot(x, w1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  t = f32[{s},{h}] tanh(a)
  p = f32[{s},{d}] dot(t, w2), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT r = f32[{s},{d}] add(x, p), sharding={{replicated}}
}}
"""


def convolution(ranks):
    """Two 3x3 convolutions over an image that is cut by rows: neighbours exchange their edges."""
    return f"""HloModule convolution, num_partitions={ranks}
ENTRY main {{
  x = f32[1,256,256,64] parameter(0), sharding={{devices=[1,{ranks},1,1]<=[{ranks}]}}
  k1 = f32[3,3,64,64] parameter(1), sharding={{replicated}}
  k2 = f32[3,3,64,64] parameter(2), sharding={{replicated}}
  a = f32[1,256,256,64] convolution(x, k1), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f
  t = f32[1,256,256,64] tanh(a)
  ROOT r = f32[1,256,256,64] convolution(t, k2), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f, sharding={{devices=[1,{ranks},1,1]<=[{ranks}]}}
}}
"""


def embedding(ranks):
    """Rows of a table that is cut by rows: each rank picks what it has, the sum has all."""
    return f"""HloModule embedding, num_partitions={ranks}
ENTRY main {{
  table = f32[131072,256] parameter(0), sharding={{devices=[{ranks},1]<=[{ranks}]}}
  ids = s32[8192,1] parameter(1), sharding={{replicated}}
  g = f32[8192,256] gather(table, ids), offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,256}}
  ROOT r = f32[8192,256] tanh(g), sharding={{replicated}}
}}
"""


def cases(ranks, shared):
    """(name, module of one rank, module of N ranks, flags)"""
    models = os.path.join(shared, "models")
    result = [
        ("training", training(2048), training(2048), []),
        ("weak training", training(1024), training(1024 * ranks), []),
        ("transformer block", transformer(1), transformer(ranks), []),
        ("convolution by rows", convolution(1), convolution(ranks), []),
        ("embedding", embedding(1), embedding(ranks), ["--integers=131072"]),
    ]
    for name, flags in (("imagenette", ["--normal=102"]), ("vit", ["--normal=199"]), ("cappa", ["--normal=215", "--integers=32000"])):
        path = os.path.join(models, "inference", name + ".hlo")
        if os.path.exists(path):
            result.append((name, path, path, flags))
    return result


def run(binary, module, ranks, flags, iterations):
    return report(["timeout", "600", *mpirun(ranks), binary, "--json", "--warmup=1", f"--iterations={iterations}", *flags, module])


def exchange_and_waiting(binary, module, ranks, flags, folder):
    """Shares of the ranks' time."""
    trace = os.path.join(folder, "trace.json")
    run(binary, module, ranks, [*flags, f"--trace={trace}"], 1)
    with open(trace, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    tracks = {e["tid"] for e in events if e["ph"] == "M" and e["args"]["name"] == "collectives"}
    steps = [e for e in events if e["ph"] == "X"]
    # All ranks run the same collectives in one order.
    collectives = [[e for e in steps if e["pid"] == rank and e["tid"] in tracks] for rank in range(ranks)]
    exchanged = waited = 0.0
    for together in zip(*collectives, strict=True):
        last = max(e["ts"] for e in together)
        for e in together:
            waiting = min(last - e["ts"], e["dur"])
            waited += waiting
            exchanged += e["dur"] - waiting
    total = sum(e["dur"] for e in steps)
    return exchanged / total, waited / total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--shared", default=os.environ.get("HLORUN_SHARED", os.path.join(os.path.dirname(ROOT), "shared")))
    parser.add_argument("--times", default="")
    parser.add_argument("--plot", default="")
    arguments = parser.parse_args()
    binary = os.path.join(arguments.build, "bin", "hlorun")
    rows, kept = [], {}
    if arguments.times and os.path.exists(arguments.times):
        with open(arguments.times, encoding="utf-8") as file:
            kept = json.load(file)
    print(f"| module | one rank ms | {arguments.ranks} ranks ms | efficiency | exchange | waiting |\n|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, alone, together, flags in cases(arguments.ranks, arguments.shared):
            if arguments.only and name not in arguments.only.split(","):
                continue
            paths = []
            for kind, module in (("alone", alone), ("together", together)):
                path = module
                if not os.path.exists(module):
                    path = os.path.join(folder, f"{name}.{kind}.hlo".replace(" ", "_").replace(",", ""))
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(module)
                paths.append(path)
            times = kept.setdefault(f"{name}, {arguments.ranks} ranks", [])
            while len(times) < arguments.rounds:
                times.append([run(binary, paths[0], 1, flags, arguments.iterations)["best_ms"],
                              run(binary, paths[1], arguments.ranks, flags, arguments.iterations)["best_ms"]])
                if arguments.times:
                    with open(arguments.times, "w", encoding="utf-8") as file:
                        json.dump(kept, file)
            one, many = (statistics.median(t) for t in zip(*times))
            scale = arguments.ranks if "weak" in name else 1
            efficiency = one * scale / many
            exchange, waiting = exchange_and_waiting(binary, paths[1], arguments.ranks, flags, folder)
            rows.append((name, efficiency))
            print(f"| {name} | {one:.2f} | {many:.2f} | {efficiency:.2f} | {exchange:.0%} | {waiting:.0%} |", flush=True)
    if arguments.plot:
        import matplotlib  # pylint: disable=import-outside-toplevel
        matplotlib.use("Agg")
        from matplotlib import pyplot  # pylint: disable=import-outside-toplevel
        pyplot.barh([name for name, _ in rows], [value for _, value in rows])
        pyplot.axvline(1.0, color="black", linewidth=0.8)
        pyplot.xlabel(f"{arguments.ranks} ranks against one, same cores")
        pyplot.tight_layout()
        pyplot.savefig(arguments.plot)


if __name__ == "__main__":
    main()
