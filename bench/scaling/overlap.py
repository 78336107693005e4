#!/usr/bin/env python3
"""What overlapping collectives with kernels saves, on a link that takes its time (HLORUN_TIMED_LINK), as a table.

  bench/scaling/overlap.py [--ranks=2] [--rounds=5] [--share=0.5] [--only=NAME,..] [--build=build]

For each module: the step with messages that take no time (compute), the bandwidth at which the rest of the step takes
`share` of that, and there the step with collectives apart from kernels and beside them, alternating, medians. The last
column is the step beside them over the larger of compute and communication: 1.0 is all there is to have.
"""

import argparse
import os
import re
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from scaling import ROOT, run, training, transformer  # pylint: disable=wrong-import-position


def product_beside_sum(ranks):
    """A product that needs nothing of a large sum."""
    group = ",".join(str(r) for r in range(ranks))
    return f"""HloModule product_beside_sum, num_partitions={ranks}
sum {{ l = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT s = f32[] add(l, r) }}
ENTRY main {{
  x = f32[2048,1024] parameter(0)
  y = f32[1024,1024] parameter(1)
  a = f32[2048,1024] all-reduce(x), channel_id=1, use_global_device_ids=true, replica_groups={{{{{group}}}}}, to_apply=sum
  b = f32[1024,1024] dot(y, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  c = f32[1024,1024] dot(b, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  t = f32[2048,1024] tanh(a)
  ROOT z = (f32[2048,1024], f32[1024,1024]) tuple(t, c)
}}
"""


def data_parallel(ranks):
    """The training step with all weights on each rank: whole gradients are summed."""
    text = training(2048)
    for name, sharding in (("w1", "replicated"), ("w2", "replicated"), ("x", f"devices=[{ranks},1]<=[{ranks}]"), ("y", f"devices=[{ranks},1]<=[{ranks}]")):
        text = re.sub(rf"^(  {name} = .*parameter\(\d\))$", rf"\1, sharding={{{sharding}}}", text, flags=re.MULTILINE)
    return text.replace("HloModule training", f"HloModule training, num_partitions={ranks}")


def step(binary, path, ranks, link, overlap):
    os.environ["HLORUN_TIMED_LINK"] = link
    os.environ["HLORUN_OVERLAP"] = overlap
    return run(binary, path, ranks, ["--normal=0"], 5)["best_ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--share", type=float, default=0.5)
    parser.add_argument("--only", default="")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    arguments = parser.parse_args()
    binary = os.path.join(arguments.build, "bin", "hlorun")
    modules = (("a product beside a sum", product_beside_sum(arguments.ranks)), ("training", training(2048)),
               ("data-parallel training", data_parallel(arguments.ranks)), ("tensor-parallel layers", transformer(arguments.ranks)))
    print("| module | GB/s | compute ms | communication ms | apart ms | beside ms | beside / larger |\n|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in modules:
            if arguments.only and name not in arguments.only.split(","):
                continue
            path = os.path.join(folder, name.replace(" ", "_") + ".hlo")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            ranks = arguments.ranks
            # What does not depend on the bandwidth (meeting, waking up) is part of the communication: found in few steps.
            bandwidth = 1.0
            for _ in range(4):
                pairs = [(step(binary, path, ranks, "0,1000", "0"), step(binary, path, ranks, f"20,{bandwidth}", "0")) for _ in range(3)]
                compute, slowed = (min(times) for times in zip(*pairs))
                bandwidth *= max(slowed - compute, 0.1) / (arguments.share * compute)
            times = ([], [], [])
            for _ in range(arguments.rounds):
                times[0].append(step(binary, path, ranks, "0,1000", "0"))
                times[1].append(step(binary, path, ranks, f"20,{bandwidth:.4f}", "0"))
                times[2].append(step(binary, path, ranks, f"20,{bandwidth:.4f}", "1"))
            compute, apart, beside = (statistics.median(t) for t in times)
            communication = apart - compute
            print(f"| {name} | {bandwidth:.2f} | {compute:.2f} | {communication:.2f} | {apart:.2f} | {beside:.2f} | {beside / max(compute, communication):.2f} |", flush=True)


if __name__ == "__main__":
    main()
