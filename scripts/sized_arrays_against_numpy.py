#!/usr/bin/env python3
"""Programs over arrays of varying size, at sizes 0, 1, 3 and the bound, against NumPy on arrays of the actual size.

    python3 scripts/sized_arrays_against_numpy.py [--intel VENV] [--program build/bin/example_cases] [NAME ...]

Each program is compiled once, at its bounds, and run at every combination of sizes, with padding of NaN and of random bits.
Prints a line for each program, and each case that differs; exit 1 if one does, 77 where NumPy is missing.
"""
import dataclasses
import itertools
import os
import re
import sys
import tempfile
from typing import Callable

try:
    import numpy as np
except ImportError:
    sys.exit(77)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
from example_cases import arguments, run  # noqa: E402  found through the path above
from platforms import platforms  # noqa: E402

ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
MAX = "max { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] maximum(a, b) }\n"
LESS = ("less { a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = s32[] parameter(2)\n d = s32[] parameter(3)\n"
        " ROOT r = pred[] compare(a, b), direction=LT }\n")


@dataclasses.dataclass
class Program:
    """`text`: the entry's instructions, ${N} a size, ${3N+2} a number that follows from it, #{N} the bound itself. `arrays(random,
    **sizes)` gives the arguments, `expected(*arguments)` the results, by NumPy alone."""
    name: str
    bounds: dict
    text: str
    arrays: Callable
    expected: Callable
    computations: str = ""

    def module(self):
        def number(expression):
            factor, name, constant = re.fullmatch(r"(\d*)(\w)(\+\d+)?", expression).groups()
            return int(factor or 1) * self.bounds[name] + int(constant or 0)

        text = f"{self.computations}ENTRY e {{\n{self.text}\n}}\n"
        text = re.sub(r"\$\{(.*?)\}", lambda m: f"<={number(m[1])}", text)
        text = re.sub(r"#\{(.*?)\}", lambda m: str(number(m[1])), text)
        return f"HloModule {self.name}\n{text}"

    def cases(self):
        names = list(self.bounds)
        for sizes in itertools.product(*({0, 1, 3, self.bounds[n]} for n in names)):
            random = np.random.default_rng(sum(s * 31**i for i, s in enumerate(sizes)) + 1)
            arguments = [np.asarray(a) for a in self.arrays(random, **dict(zip(names, sizes)))]
            results = self.expected(*arguments)
            results = results if isinstance(results, tuple) else (results,)
            yield "_".join(f"{n}{s}" for n, s in zip(names, sizes)), arguments, [np.asarray(r) for r in results]


def normal(random, *shape):
    return random.standard_normal(shape).astype(np.float32)


def wide(*arrays):
    return [a.astype(np.float64) for a in arrays]


def f32(array):
    return np.asarray(array, np.float32)


def softmax(x):
    e = np.exp(x.astype(np.float64) - (x.max(axis=1, keepdims=True) if x.shape[1] else 0))
    return f32(e / e.sum(axis=1, keepdims=True))


def means(x):
    with np.errstate(invalid="ignore"):
        return f32(x.astype(np.float64).sum(axis=0) / np.float64(x.shape[0]))


def convolution(x, w):
    """3x3, padded by 1, NHWC by HWIO."""
    padded = np.pad(x.astype(np.float64), ((0, 0), (1, 1), (1, 1), (0, 0)))
    height, width = x.shape[1:3]
    windows = [padded[:, i:i + height, j:j + width] @ w[i, j].astype(np.float64) for i in range(3) for j in range(3)]
    return f32(sum(windows))


def sort_pairs(x):
    order = np.argsort(x, axis=1, kind="stable")
    return np.take_along_axis(x, order, axis=1), order.astype(np.int32)


def scatter_add(table, index, updates):
    result = table.astype(np.float64)
    inside = (index[:, 0] >= 0) & (index[:, 0] < len(table))  # XLA skips the others
    np.add.at(result, index[inside, 0], updates[inside])
    return f32(result)


def scan(x):
    """lax.scan of (c, row) -> (tanh(c + row), c * row)."""
    carry, rows = np.zeros(x.shape[1]), []
    for row in x.astype(np.float64):
        rows.append(carry * row)
        carry = np.tanh(carry + row)
    return f32(carry), f32(rows).reshape(x.shape)


def scan_columns(x, c):
    """The scan op from the end of x's last dimension, (c, column) -> (tanh(c + column), c * column)."""
    carry, columns = c.astype(np.float64), []
    for i in reversed(range(x.shape[1])):
        columns.insert(0, carry * x[:, i])
        carry = np.tanh(carry + x[:, i])
    return f32(np.array(columns).reshape(x.shape[::-1])).T, f32(carry)


def lines_from_the_end(a, b):
    """Of x -> a x + b, one after the other from each to the last: where 0 is taken."""
    y, results = np.zeros(a.shape[0]), np.zeros(a.shape)
    slope = np.ones(a.shape[0])
    for i in reversed(range(a.shape[1])):
        y, slope = slope * b[:, i] + y, slope * a[:, i]
        results[:, i] = y
    return f32(results)


LOG_SUM_EXP = """logsumexp { a = f32[] parameter(0)
 b = f32[] parameter(1)
 d = f32[] subtract(a, b)
 unequal = pred[] compare(d, d), direction=NE
 s = f32[] add(a, b)
 m = f32[] maximum(a, b)
 e = f32[] abs(d)
 n = f32[] negate(e)
 x = f32[] exponential(n)
 l = f32[] log-plus-one(x)
 t = f32[] add(m, l)
 ROOT r = f32[] select(unequal, s, t) }
"""
AFTER = """after { a = f32[] parameter(0)
 b = f32[] parameter(1)
 c = f32[] parameter(2)
 d = f32[] parameter(3)
 e = f32[] multiply(a, c)
 f = f32[] multiply(c, b)
 g = f32[] add(f, d)
 ROOT r = (f32[], f32[]) tuple(e, g) }
"""

PROGRAMS = [
    Program("elementwise", {"N": 8}, """
  x = f32[${N},4] parameter(0)
  y = f32[4] parameter(1)
  b = f32[${N},4] broadcast(y), dimensions={1}
  s = f32[${N},4] add(x, b)
  p = f32[${N},4] multiply(s, x)
  ROOT r = f32[${N},4] tanh(p)""",
            lambda r, N: (normal(r, N, 4), normal(r, 4)), lambda x, y: f32(np.tanh((x + y) * x))),
    Program("both_dimensions", {"N": 6, "M": 5}, """
  x = f32[${N},${M}] parameter(0)
  y = f32[${M}] parameter(1)
  b = f32[${N},${M}] broadcast(y), dimensions={1}
  s = f32[${N},${M}] subtract(x, b)
  t = f32[${M},${N}] transpose(s), dimensions={1,0}
  ROOT r = f32[${M},${N}] negate(t)""",
            lambda r, N, M: (normal(r, N, M), normal(r, M)), lambda x, y: -(x - y).T),
    Program("reductions", {"N": 9, "M": 6}, """
  x = f32[${N},${M}] parameter(0)
  zero = f32[] constant(0)
  low = f32[] constant(-inf)
  rows = f32[${N}] reduce(x, zero), dimensions={1}, to_apply=add
  columns = f32[${M}] reduce(x, zero), dimensions={0}, to_apply=add
  all = f32[] reduce(x, zero), dimensions={0,1}, to_apply=add
  top = f32[] reduce(x, low), dimensions={0,1}, to_apply=max
  ROOT t = (f32[${N}], f32[${M}], f32[], f32[]) tuple(rows, columns, all, top)""",
            lambda r, N, M: (normal(r, N, M),),
            lambda x: (f32(x.sum(axis=1, dtype=np.float64)), f32(x.sum(axis=0, dtype=np.float64)), f32(x.sum(dtype=np.float64)),
                       f32(x.max(initial=-np.inf))), ADD + MAX),
    Program("reductions_in_parts", {"N": 160}, """
  x = f32[${N},7,300] parameter(0)
  y = f32[7,${N},300] parameter(1)
  zero = f32[] constant(0)
  low = f32[] constant(-inf)
  e = f32[${N},7,300] exponential(x)
  all = f32[] reduce(e, zero), dimensions={0,1,2}, to_apply=add
  outer = f32[7] reduce(e, zero), dimensions={0,2}, to_apply=add
  inner = f32[7] reduce(y, zero), dimensions={1,2}, to_apply=add
  top = f32[7] reduce(y, low), dimensions={1,2}, to_apply=max
  ROOT t = (f32[], f32[7], f32[7], f32[7]) tuple(all, outer, inner, top)""",
            lambda r, N: (normal(r, N, 7, 300), normal(r, 7, N, 300)),
            lambda x, y: (f32(np.exp(x.astype(np.float64)).sum()), f32(np.exp(x.astype(np.float64)).sum(axis=(0, 2))),
                          f32(y.sum(axis=(1, 2), dtype=np.float64)), f32(y.max(axis=(1, 2), initial=-np.inf))), ADD + MAX),
    Program("mean", {"N": 9}, """
  x = f32[${N},4] parameter(0)
  zero = f32[] constant(0)
  s = f32[4] reduce(x, zero), dimensions={0}, to_apply=add
  n = s32[] get-dimension-size(x), dimensions={0}
  f = f32[] convert(n)
  b = f32[4] broadcast(f), dimensions={}
  ROOT r = f32[4] divide(s, b)""", lambda r, N: (normal(r, N, 4),), means, ADD),
    Program("softmax", {"N": 5, "M": 7}, """
  x = f32[${N},${M}] parameter(0)
  low = f32[] constant(-inf)
  zero = f32[] constant(0)
  m = f32[${N}] reduce(x, low), dimensions={1}, to_apply=max
  mb = f32[${N},${M}] broadcast(m), dimensions={0}
  d = f32[${N},${M}] subtract(x, mb)
  e = f32[${N},${M}] exponential(d)
  s = f32[${N}] reduce(e, zero), dimensions={1}, to_apply=add
  sb = f32[${N},${M}] broadcast(s), dimensions={0}
  ROOT r = f32[${N},${M}] divide(e, sb)""", lambda r, N, M: (normal(r, N, M),), softmax, ADD + MAX),
    Program("dot", {"M": 6, "K": 5, "N": 7}, """
  x = f32[${M},${K}] parameter(0)
  y = f32[${K},${N}] parameter(1)
  ROOT r = f32[${M},${N}] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
            lambda r, M, K, N: (normal(r, M, K), normal(r, K, N)), lambda x, y: f32(np.matmul(*wide(x, y)))),
    Program("convolution", {"B": 4, "H": 7}, """
  x = f32[${B},${H},5,2] parameter(0)
  w = f32[3,3,2,4] parameter(1)
  ROOT r = f32[${B},${H},5,4] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""",
            lambda r, B, H: (normal(r, B, H, 5, 2), normal(r, 3, 3, 2, 4)), convolution),
    Program("concatenate", {"N": 4, "M": 5}, """
  x = f32[2,${N}] parameter(0)
  y = f32[2,3] parameter(1)
  z = f32[2,${M}] parameter(2)
  a = f32[2,${N+3}] concatenate(x, y), dimensions={1}
  b = f32[2,${M+3}] concatenate(y, z), dimensions={1}
  ROOT t = (f32[2,${N+3}], f32[2,${M+3}]) tuple(a, b)""",
            lambda r, N, M: (normal(r, 2, N), normal(r, 2, 3), normal(r, 2, M)),
            lambda x, y, z: (np.concatenate([x, y], axis=1), np.concatenate([y, z], axis=1))),
    Program("pad_and_reverse", {"N": 5}, """
  x = f32[2,${N}] parameter(0)
  v = f32[] constant(7)
  p = f32[3,${N+5}] pad(x, v), padding=1_0x2_3
  ROOT r = f32[3,${N+5}] reverse(p), dimensions={1,0}""",
            lambda r, N: (normal(r, 2, N),), lambda x: np.pad(x, ((1, 0), (2, 3)), constant_values=7)[::-1, ::-1]),
    Program("sort", {"N": 8}, """
  x = f32[3,${N}] parameter(0)
  i = s32[3,#{N}] iota(), iota_dimension=1
  n = s32[] get-dimension-size(x), dimensions={1}
  j = s32[3,${N}] set-dimension-size(i, n), dimensions={1}
  ROOT r = (f32[3,${N}], s32[3,${N}]) sort(x, j), dimensions={1}, is_stable=true, to_apply=less""",
            lambda r, N: (np.round(normal(r, 3, N) * 2) / 2 + 10,), sort_pairs, LESS),
    Program("cumsum", {"N": 7}, """
  x = f32[${N},3] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[${N},3] reduce-window(x, zero), window={size=7x1 pad=6_0x0_0}, to_apply=add""",
            lambda r, N: (normal(r, N, 3),), lambda x: f32(np.cumsum(x, axis=0, dtype=np.float64)), ADD),
    Program("cumsum_of_rows", {"M": 5, "N": 9}, """
  x = f32[${M},${N}] parameter(0)
  zero = f32[] constant(0)
  s = f32[${M},${N}] multiply(x, x)
  ROOT r = f32[${M},${N}] reduce-window(s, zero), window={size=1x9 pad=0_0x8_0}, to_apply=add""",
            lambda r, M, N: (normal(r, M, N),), lambda x: f32(np.cumsum(x.astype(np.float64) ** 2, axis=1)), ADD),
    Program("cummax_from_the_end", {"N": 7, "M": 4}, """
  x = f32[${N},3,${M}] parameter(0)
  low = f32[] constant(-inf)
  ROOT r = f32[${N},3,${M}] reduce-window(x, low), window={size=7x1x1 pad=0_6x0_0x0_0}, to_apply=max""",
            lambda r, N, M: (normal(r, N, 3, M),), lambda x: np.maximum.accumulate(x[::-1], axis=0)[::-1], MAX),
    Program("cumulative_logsumexp", {"N": 9, "M": 5}, """
  x = f32[${M},${N}] parameter(0)
  low = f32[] constant(-inf)
  a = f32[${M},${N}] reduce-window(x, low), window={size=1x9 pad=0_0x8_0}, to_apply=logsumexp
  b = f32[${M},${N}] reduce-window(x, low), window={size=5x1 pad=0_4x0_0}, to_apply=logsumexp
  ROOT r = (f32[${M},${N}], f32[${M},${N}]) tuple(a, b)""", lambda r, N, M: (normal(r, M, N),),
            lambda x: (f32(np.logaddexp.accumulate(x.astype(np.float64), axis=1)),
                       f32(np.logaddexp.accumulate(x[::-1].astype(np.float64), axis=0)[::-1])), LOG_SUM_EXP),
    Program("cumulative_logsumexp_in_parts", {"N": 600}, """
  x = f32[${N},300] parameter(0)
  low = f32[] constant(-inf)
  t = f32[300,${N}] transpose(x), dimensions={1,0}
  a = f32[${N},300] reduce-window(x, low), window={size=600x1 pad=0_599x0_0}, to_apply=logsumexp
  b = f32[300,${N}] reduce-window(t, low), window={size=1x600 pad=0_0x599_0}, to_apply=logsumexp
  ROOT r = (f32[${N},300], f32[300,${N}]) tuple(a, b)""", lambda r, N: (normal(r, N, 300),),
            lambda x: (f32(np.logaddexp.accumulate(x[::-1].astype(np.float64), axis=0)[::-1]),
                       f32(np.logaddexp.accumulate(x.astype(np.float64), axis=0).T)), LOG_SUM_EXP),
    Program("cumulative_lines_from_the_end", {"N": 8}, """
  x = f32[3,${N}] parameter(0)
  y = f32[3,${N}] parameter(1)
  one = f32[] constant(1)
  zero = f32[] constant(0)
  w = (f32[3,${N}], f32[3,${N}]) reduce-window(x, y, one, zero), window={size=1x8 pad=0_0x0_7}, to_apply=after
  ROOT r = f32[3,${N}] get-tuple-element(w), index=1""", lambda r, N: (normal(r, 3, N), normal(r, 3, N)),
            lines_from_the_end, AFTER),
    Program("scan_op", {"N": 6, "M": 4}, """
  x = f32[${M},${N}] parameter(0)
  c = f32[${M}] parameter(1)
  ROOT r = (f32[${M},${N}], f32[${M}]) scan(x, c), dimensions={1}, is_reverse=true, num_carries=1, to_apply=step""",
            lambda r, N, M: (normal(r, M, N), normal(r, M)), scan_columns, """step { x = f32[${M}] parameter(0)
 c = f32[${M}] parameter(1)
 s = f32[${M}] add(x, c)
 t = f32[${M}] tanh(s)
 m = f32[${M}] multiply(c, x)
 ROOT r = (f32[${M}], f32[${M}]) tuple(m, t) }
"""),
    Program("scan", {"N": 6}, """
  x = f32[${N},3] parameter(0)
  zero = f32[] constant(0)
  carry = f32[3] broadcast(zero), dimensions={}
  zeros = f32[#{N},3] broadcast(zero), dimensions={}
  n = s32[] get-dimension-size(x), dimensions={0}
  y = f32[${N},3] set-dimension-size(zeros, n), dimensions={0}
  i = s32[] constant(0)
  init = (s32[], s32[], f32[3], f32[${N},3], f32[${N},3]) tuple(i, n, carry, x, y)
  w = (s32[], s32[], f32[3], f32[${N},3], f32[${N},3]) while(init), condition=more, body=step
  c = f32[3] get-tuple-element(w), index=2
  ys = f32[${N},3] get-tuple-element(w), index=4
  ROOT t = (f32[3], f32[${N},3]) tuple(c, ys)""", lambda r, N: (normal(r, N, 3),), scan, """more {
  p = (s32[], s32[], f32[3], f32[${N},3], f32[${N},3]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] get-tuple-element(p), index=1
  ROOT r = pred[] compare(i, n), direction=LT }
step {
  p = (s32[], s32[], f32[3], f32[${N},3], f32[${N},3]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] get-tuple-element(p), index=1
  c = f32[3] get-tuple-element(p), index=2
  x = f32[${N},3] get-tuple-element(p), index=3
  y = f32[${N},3] get-tuple-element(p), index=4
  zero = s32[] constant(0)
  one = s32[] constant(1)
  s = f32[1,3] dynamic-slice(x, i, zero), dynamic_slice_sizes={1,3}
  row = f32[3] reshape(s)
  m = f32[3] multiply(c, row)
  u = f32[1,3] reshape(m)
  v = f32[${N},3] dynamic-update-slice(y, u, i, zero)
  a = f32[3] add(c, row)
  d = f32[3] tanh(a)
  j = s32[] add(i, one)
  ROOT t = (s32[], s32[], f32[3], f32[${N},3], f32[${N},3]) tuple(j, n, d, x, v) }
"""),
    Program("gather", {"N": 6}, """
  table = f32[9,4] parameter(0)
  i = s32[${N}] parameter(1)
  ROOT r = f32[${N},4] gather(table, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}""",
            lambda r, N: (normal(r, 9, 4), r.integers(-2, 12, N).astype(np.int32)), lambda table, i: table[np.clip(i, 0, 8)]),
    Program("scatter_add", {"N": 6}, """
  base = f32[5,2] parameter(0)
  i = s32[${N},1] parameter(1)
  u = f32[${N},2] parameter(2)
  ROOT r = f32[5,2] scatter(base, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add""",
            lambda r, N: (normal(r, 5, 2), r.integers(-1, 7, (N, 1)).astype(np.int32), normal(r, N, 2)), scatter_add, ADD),
]


def write(program, folder):
    cases = os.path.join(folder, "cases")
    os.makedirs(cases)
    with open(os.path.join(folder, "module.hlo"), "w") as file:
        file.write(program.module())
    for name, arguments, results in program.cases():
        np.savez(os.path.join(cases, f"{name}.inputs.npz"), **{str(i): a for i, a in enumerate(arguments)})
        np.savez(os.path.join(cases, f"{name}.expected.npz"), **{str(i): a for i, a in enumerate(results)})


def main():
    flags = arguments(__doc__).parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as top:
        for program in PROGRAMS:
            if flags.names and program.name not in flags.names:
                continue
            folder = os.path.join(top, program.name)
            write(program, folder)
            for platform, environment in platforms(flags.intel, top):
                for padding in ("nan", "random"):
                    good, count, trouble = run(flags.program, folder, "auto", {**environment, "HLORUN_PADDING": padding})
                    print(f"{platform:<8} {program.name:<16} {padding:<7} {good}/{count}", flush=True)
                    if trouble or not good:
                        failed += 1
                        print(trouble, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
