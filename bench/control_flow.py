#!/usr/bin/env python3
"""What control flow costs: a predicated product, loops over large carries, loops of unknown length.

    python3 bench/control_flow.py [--hlorun build/bin/hlorun] [--iterations 5]

Prints, from one run each in alternation: a 1024^3 dot behind a predicate, taken and not taken (aim: not taken <= 2 %); a
while of 10,000 iterations that updates one row of a carry, for carries of several sizes (aim: time per iteration
independent of the size); a loop that ends when its data say so, by --branches=host (a wait an iteration) and auto.
"""
import argparse
import os
import tempfile

import numpy as np

from runs import HLORUN, report

# The result is one element, so that the branch that is not taken is all there is to measure.
PREDICATED_DOT = """HloModule predicated_dot
product { t = (f32[1024,1024], f32[1024,1024]) parameter(0)
  x = f32[1024,1024] get-tuple-element(t), index=0
  y = f32[1024,1024] get-tuple-element(t), index=1
  d = f32[1024,1024] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  i = s32[1] constant({5})
  ROOT r = f32[1,1024] gather(d, i), offset_dims={0,1}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=0, slice_sizes={1,1024} }
nothing { t = (f32[1024,1024], f32[1024,1024]) parameter(0)
  z = f32[] constant(0)
  ROOT b = f32[1,1024] broadcast(z), dimensions={} }
ENTRY e {
  p = pred[] parameter(0)
  x = f32[1024,1024] parameter(1)
  y = f32[1024,1024] parameter(2)
  t = (f32[1024,1024], f32[1024,1024]) tuple(x, y)
  ROOT r = f32[1,1024] conditional(p, t, t), true_computation=product, false_computation=nothing
}
"""

ROW_LOOP = """HloModule row_loop
cond {{ t = (s32[], f32[{rows},{columns}], f32[1,{columns}]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(10000)
  ROOT p = pred[] compare(i, n), direction=LT }}
body {{ t = (s32[], f32[{rows},{columns}], f32[1,{columns}]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[{rows},{columns}] get-tuple-element(t), index=1
  row = f32[1,{columns}] get-tuple-element(t), index=2
  one = s32[] constant(1)
  zero = s32[] constant(0)
  j = s32[] add(i, one)
  rows = s32[] constant({rows})
  k = s32[] remainder(i, rows)
  f = f32[] convert(i)
  fb = f32[1,{columns}] broadcast(f), dimensions={{}}
  u = f32[1,{columns}] add(row, fb)
  y = f32[{rows},{columns}] dynamic-update-slice(x, u, k, zero)
  ROOT r = (s32[], f32[{rows},{columns}], f32[1,{columns}]) tuple(j, y, row) }}
ENTRY e {{
  x = f32[{rows},{columns}] parameter(0)
  row = f32[1,{columns}] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[{rows},{columns}], f32[1,{columns}]) tuple(zero, x, row)
  w = (s32[], f32[{rows},{columns}], f32[1,{columns}]) while(t), condition=cond, body=body
  ROOT r = f32[{rows},{columns}] get-tuple-element(w), index=1
}}
"""

DATA_LOOP = """HloModule data_loop
cond { t = (s32[], f32[262144]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  zero = s32[] constant(0)
  ROOT p = pred[] compare(i, zero), direction=GT }
body { t = (s32[], f32[262144]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[262144] get-tuple-element(t), index=1
  one = s32[] constant(1)
  j = s32[] subtract(i, one)
  h = f32[] constant(0.5)
  b = f32[262144] broadcast(h), dimensions={}
  y = f32[262144] multiply(x, b)
  s = f32[262144] sine(y)
  ROOT r = (s32[], f32[262144]) tuple(j, s) }
ENTRY e {
  i = s32[] parameter(0)
  x = f32[262144] parameter(1)
  t = (s32[], f32[262144]) tuple(i, x)
  w = (s32[], f32[262144]) while(t), condition=cond, body=body
  ROOT r = f32[262144] get-tuple-element(w), index=1
}
"""


class Bench:
    def __init__(self, hlorun, iterations, folder):
        self.hlorun, self.iterations, self.folder = hlorun, iterations, folder

    def run(self, text, *flags, inputs=None, rounds=1):
        path = os.path.join(self.folder, "module.hlo")
        with open(path, "w") as file:
            file.write(text)
        command = [self.hlorun, "--json", f"--iterations={self.iterations}", "--warmup=2", *flags]
        if inputs is not None:
            np.savez(os.path.join(self.folder, "inputs.npz"), **{str(i): a for i, a in enumerate(inputs)})
            command.append(f"--inputs={self.folder}/inputs.npz")
        return min(report([*command, path])["best_ms"] for _ in range(rounds))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hlorun", default=HLORUN)
    parser.add_argument("--iterations", type=int, default=5)
    flags = parser.parse_args()
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(flags.hlorun, flags.iterations, folder)
        matrices = [random.standard_normal((1024, 1024)).astype(np.float32) for _ in range(2)]
        ms = {way: bench.run(PREDICATED_DOT, "--branches=predicate", inputs=[np.array(way), *matrices], rounds=3) for way in (True, False)}
        print(f"predicated 1024^3 dot: taken {ms[True]:.3f} ms, not taken {ms[False]:.3f} ms ({ms[False] / ms[True]:.1%})")
        for rows, columns in ((8, 1024), (128, 1024), (1024, 1024), (4096, 1024)):
            ms = bench.run(ROW_LOOP.format(rows=rows, columns=columns), rounds=2)
            print(f"10,000 row updates of f32[{rows},{columns}]: {ms:.3f} ms, {ms / 10:.3f} us an iteration")
        x = random.standard_normal(262144).astype(np.float32)
        for branches in ("host", "auto"):
            ms = bench.run(DATA_LOOP, f"--branches={branches}", inputs=[np.array(500, np.int32), x], rounds=2)
            print(f"loop of 500 iterations, the count data, --branches={branches}: {ms:.3f} ms, {ms * 2:.2f} us an iteration")


if __name__ == "__main__":
    main()
