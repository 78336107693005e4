#include "tests/passes/dynamic/sized_cases.h"

#include <random>
#include <regex>

// Tables, one case a row.
// clang-format off

namespace hlorun::testing_support {
namespace {

constexpr const char* kAdd = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }\n";
constexpr const char* kMax = "max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] maximum(a, b) }\n";

constexpr const char* kLogSumExp =
    "logsumexp { a = f32[] parameter(0)  b = f32[] parameter(1)  d = f32[] subtract(a, b)  unequal = pred[] compare(d, d), direction=NE\n"
    "  s = f32[] add(a, b)  m = f32[] maximum(a, b)  e = f32[] abs(d)  n = f32[] negate(e)  x = f32[] exponential(n)\n"
    "  l = f32[] log-plus-one(x)  t = f32[] add(m, l)  ROOT r = f32[] select(unequal, s, t) }\n";
// x -> a x + b, then x -> c x + d.
constexpr const char* kAfter =
    "after { a = f32[] parameter(0)  b = f32[] parameter(1)  c = f32[] parameter(2)  d = f32[] parameter(3)\n"
    "  e = f32[] multiply(a, c)  f = f32[] multiply(c, b)  g = f32[] add(f, d)  ROOT r = (f32[], f32[]) tuple(e, g) }\n";

std::string Entry(const std::string& body, const std::string& computations = "") {
  return "HloModule sized\n" + computations + "ENTRY main {\n" + body + "}\n";
}

std::vector<SizedCase> Make() {
  std::vector<SizedCase> cases;
  const auto add = [&](const std::string& name, const std::map<std::string, int64_t>& bounds, const std::string& text, bool exact = true) {
    cases.push_back({name, text, bounds, exact});
  };
  add("elementwise", {{"N", 8}}, Entry(R"(
    x = f32[${N},4] parameter(0)
    y = f32[${N},4] parameter(1)
    s = f32[${N},4] add(x, y)
    ROOT r = f32[${N},4] multiply(s, x)
)"));
  add("two_dimensions", {{"N", 5}, {"M", 6}}, Entry(R"(
    x = f32[${N},${M}] parameter(0)
    y = f32[${M}] parameter(1)
    b = f32[${N},${M}] broadcast(y), dimensions={1}
    s = f32[${N},${M}] subtract(x, b)
    t = f32[${M},${N}] transpose(s), dimensions={1,0}
    ROOT r = f32[${M},${N}] negate(t)
)"));
  add("sum_of_dynamic", {{"N", 9}}, Entry(R"(
    x = f32[${N},4] parameter(0)
    zero = f32[] constant(0)
    ROOT r = f32[4] reduce(x, zero), dimensions={0}, to_apply=add
)", kAdd), false);
  add("sum_of_rows", {{"N", 9}}, Entry(R"(
    x = f32[3,${N}] parameter(0)
    zero = f32[] constant(0)
    ROOT r = f32[3] reduce(x, zero), dimensions={1}, to_apply=add
)", kAdd), false);
  add("max_of_all", {{"N", 5}, {"M", 4}}, Entry(R"(
    x = f32[${N},${M}] parameter(0)
    low = f32[] constant(-inf)
    ROOT r = f32[] reduce(x, low), dimensions={0,1}, to_apply=max
)", kMax));
  add("product", {{"N", 9}}, Entry(R"(
    x = f32[${N}] parameter(0)
    one = f32[] constant(1)
    ROOT r = f32[] reduce(x, one), dimensions={0}, to_apply=mul
)", "mul { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] multiply(a, b) }\n"), false);
  add("argmax", {{"N", 7}}, Entry(R"(
    x = f32[3,${N}] parameter(0)
    i = s32[3,7] iota(), iota_dimension=1
    n = s32[] get-dimension-size(x), dimensions={1}
    j = s32[3,${N}] @resize_i
    low = f32[] constant(-inf)
    none = s32[] constant(-1)
    ROOT r = (f32[3], s32[3]) reduce(x, j, low, none), dimensions={1}, to_apply=larger
)", R"(larger {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  p = pred[] compare(a, b), direction=GE
  v = f32[] select(p, a, b)
  w = s32[] select(p, i, j)
  ROOT t = (f32[], s32[]) tuple(v, w)
}
)"));
  add("softmax", {{"N", 5}, {"M", 6}}, Entry(R"(
    x = f32[${N},${M}] parameter(0)
    low = f32[] constant(-inf)
    zero = f32[] constant(0)
    m = f32[${N}] reduce(x, low), dimensions={1}, to_apply=max
    mb = f32[${N},${M}] broadcast(m), dimensions={0}
    d = f32[${N},${M}] subtract(x, mb)
    e = f32[${N},${M}] exponential(d)
    s = f32[${N}] reduce(e, zero), dimensions={1}, to_apply=add
    sb = f32[${N},${M}] broadcast(s), dimensions={0}
    ROOT r = f32[${N},${M}] divide(e, sb)
)", std::string(kAdd) + kMax), false);
  add("mean", {{"N", 9}}, Entry(R"(
    x = f32[${N},4] parameter(0)
    zero = f32[] constant(0)
    s = f32[4] reduce(x, zero), dimensions={0}, to_apply=add
    n = s32[] get-dimension-size(x), dimensions={0}
    f = f32[] convert(n)
    b = f32[4] broadcast(f), dimensions={}
    ROOT r = f32[4] divide(s, b)
)", kAdd), false);
  add("dot_rows", {{"N", 6}}, Entry(R"(
    x = f32[${N},5] parameter(0)
    w = f32[5,7] parameter(1)
    ROOT r = f32[${N},7] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
)"), false);
  add("dot_contracting", {{"K", 6}}, Entry(R"(
    x = f32[3,${K}] parameter(0)
    w = f32[${K},4] parameter(1)
    ROOT r = f32[3,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
)"), false);
  add("dot_all", {{"B", 3}, {"M", 4}, {"N", 5}, {"K", 3}}, Entry(R"(
    x = f32[${B},${M},${K}] parameter(0)
    y = f32[${B},${K},${N}] parameter(1)
    ROOT r = f32[${B},${M},${N}] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
)"), false);
  add("exportable", {{"M", 6}, {"N", 7}}, Entry(R"(
    x = f32[${M},5] parameter(0)
    y = f32[5,${N}] parameter(1)
    ROOT r = f32[${M},${N}] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
)"), false);
  add("convolution", {{"B", 3}, {"H", 7}}, Entry(R"(
    x = f32[${B},${H},5,2] parameter(0)
    w = f32[3,3,2,4] parameter(1)
    ROOT r = f32[${B},${H},5,4] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
)"), false);
  add("convolution_stride", {{"H", 9}}, Entry(R"(
    x = f32[2,${2H+1},2] parameter(0)
    w = f32[3,2,4] parameter(1)
    ROOT r = f32[2,${H},4] convolution(x, w), window={size=3 stride=2}, dim_labels=b0f_0io->b0f
)"), false);
  add("cumsum", {{"N", 7}}, Entry(R"(
    x = f32[${N},3] parameter(0)
    zero = f32[] constant(0)
    ROOT r = f32[${N},3] @cumsum
)", kAdd), false);
  // Running values: along each kind of dimension, in both directions, beside dimensions that vary as well.
  add("cumsum_minor", {{"M", 5}, {"N", 7}}, Entry(R"(
    x = f32[${M},${N}] parameter(0)
    zero = f32[] constant(0)
    ROOT r = f32[${M},${N}] reduce-window(x, zero), window={size=1x@n pad=0_0x@b_0}, to_apply=add
)", kAdd), false);
  add("cumsum_reverse", {{"N", 7}, {"M", 3}}, Entry(R"(
    x = f32[${N},${M}] parameter(0)
    start = f32[] parameter(1)
    ROOT r = f32[${N},${M}] reduce-window(x, start), window={size=@nx1 pad=0_@bx0_0}, to_apply=add
)", kAdd), false);
  add("cummax_reverse_minor", {{"N", 9}}, Entry(R"(
    x = f32[5,${N}] parameter(0)
    low = f32[] constant(-inf)
    y = f32[5,${N}] exponential(x)
    r = f32[5,${N}] reduce-window(y, low), window={size=1x@n pad=0_0x0_@b}, to_apply=max
    ROOT n = f32[5,${N}] negate(r)
)", kMax), false);
  add("cumsum_beside", {{"M", 3}, {"N", 6}}, Entry(R"(
    x = f32[${M},4,5,${N}] parameter(0)
    zero = f32[] constant(0)
    ROOT r = f32[${M},4,5,${N}] reduce-window(x, zero), window={size=1x1x5x1 pad=0_0x0_0x4_0x0_0}, to_apply=add
)", kAdd), false);
  add("cumsum_middle", {{"M", 2}, {"N", 5}, {"K", 3}}, Entry(R"(
    x = f32[2,${M},${N},2,${K}] parameter(0)
    zero = f32[] constant(0)
    y = f32[2,${M},${N},2,${K}] multiply(x, x)
    c = f32[2,${M},${N},2,${K}] reduce-window(y, zero), window={size=1x1x@nx1x1 pad=0_0x0_0x@b_0x0_0x0_0}, to_apply=add
    s = f32[2,${M},2,${K}] reduce(c, zero), dimensions={2}, to_apply=add
    ROOT t = (f32[2,${M},${N},2,${K}], f32[2,${M},2,${K}]) tuple(c, s)
)", kAdd), false);
  add("cumulative_pairs", {{"N", 6}}, Entry(R"(
    x = f32[${N}] parameter(0)
    y = f32[${N}] parameter(1)
    zero = f32[] constant(0)
    one = f32[] constant(1)
    ROOT r = (f32[${N}], f32[${N}]) reduce-window(x, y, zero, one), window={size=@n pad=@b_0}, to_apply=both
)", "both { a = f32[] parameter(0)  b = f32[] parameter(1)  c = f32[] parameter(2)  d = f32[] parameter(3)\n"
    "  e = f32[] add(a, c)  f = f32[] maximum(b, d)  ROOT r = (f32[], f32[]) tuple(e, f) }\n"), false);
  // Reducers of their own, the second of which does not commute: from one end and from the other.
  add("cumulative_logsumexp", {{"N", 6}, {"M", 3}}, Entry(R"(
    x = f32[${M},${N}] parameter(0)
    low = f32[] constant(-inf)
    ROOT r = f32[${M},${N}] reduce-window(x, low), window={size=1x@n pad=0_0x@b_0}, to_apply=logsumexp
)", kLogSumExp), false);
  add("cumulative_logsumexp_reverse", {{"N", 6}, {"M", 3}}, Entry(R"(
    x = f32[${N},${M}] parameter(0)
    low = f32[] constant(-inf)
    ROOT r = f32[${N},${M}] reduce-window(x, low), window={size=@nx1 pad=0_@bx0_0}, to_apply=logsumexp
)", kLogSumExp), false);
  add("cumulative_lines_reverse", {{"N", 6}}, Entry(R"(
    x = f32[3,${N}] parameter(0)
    y = f32[3,${N}] parameter(1)
    zero = f32[] constant(0)
    one = f32[] constant(1)
    w = (f32[3,${N}], f32[3,${N}]) reduce-window(x, y, one, zero), window={size=1x@n pad=0_0x0_@b}, to_apply=after
    ROOT r = f32[3,${N}] get-tuple-element(w), index=1
)", kAfter), false);
  add("max_pool_low", {{"N", 4}}, Entry(R"(
    x = f32[2,${2N+3}] parameter(0)
    low = f32[] constant(-inf)
    ROOT r = f32[2,${N+1}] reduce-window(x, low), window={size=1x3 stride=1x2 pad=0_0x1_0}, to_apply=max
)", kMax));
  add("max_pool", {{"N", 4}}, Entry(R"(
    x = f32[2,${2N}] parameter(0)
    low = f32[] constant(-inf)
    ROOT r = f32[2,${N}] reduce-window(x, low), window={size=1x2 stride=1x2}, to_apply=max
)", kMax));
  add("sort", {{"N", 8}}, Entry(R"(
    x = f32[2,${N}] parameter(0)
    ROOT r = f32[2,${N}] sort(x), dimensions={1}, is_stable=true, to_apply=less
)", "less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=LT, type=TOTALORDER }\n"));
  add("reverse", {{"N", 6}}, Entry(R"(
    x = f32[2,${N}] parameter(0)
    ROOT r = f32[2,${N}] reverse(x), dimensions={1,0}
)"));
  add("pad", {{"N", 5}}, Entry(R"(
    x = f32[2,${N}] parameter(0)
    v = f32[] constant(7)
    ROOT r = f32[3,${N+5}] pad(x, v), padding=1_0x2_3
)"));
  add("concatenate", {{"N", 4}, {"M", 3}}, Entry(R"(
    x = f32[2,${N}] parameter(0)
    y = f32[2,3] parameter(1)
    z = f32[2,${M}] parameter(2)
    c = f32[2,${N+3}] concatenate(x, y), dimensions={1}
    d = f32[2,${M+3}] concatenate(y, z), dimensions={1}
    ROOT t = (f32[2,${N+3}], f32[2,${M+3}]) tuple(c, d)
)"));
  add("merge_outer", {{"N", 5}}, Entry(R"(
    x = f32[${N},3,2] parameter(0)
    m = f32[${3N},2] reshape(x)
    ROOT r = f32[${6N}] reshape(m)
)"));
  add("merge_inner", {{"N", 5}}, Entry(R"(
    x = f32[3,${N}] parameter(0)
    ROOT r = f32[${3N}] reshape(x)
)"));
  add("merge_middle", {{"N", 4}}, Entry(R"(
    x = f32[2,${N},3] parameter(0)
    ROOT r = f32[2,${3N}] reshape(x)
)"));
  add("split_outer", {{"N", 5}}, Entry(R"(
    x = f32[${4N}] parameter(0)
    ROOT r = f32[${N},4] reshape(x)
)"));
  add("split_inner", {{"N", 5}}, Entry(R"(
    x = f32[${4N}] parameter(0)
    ROOT r = f32[4,${N}] reshape(x)
)"));
  add("gather_rows", {{"N", 6}}, Entry(R"(
    table = f32[9,4] parameter(0)
    i = s32[${N}] parameter(1)
    ROOT r = f32[${N},4] gather(table, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}
)"));
  add("scatter_add", {{"N", 6}}, Entry(R"(
    base = f32[5,2] parameter(0)
    i = s32[${N},1] parameter(1)
    u = f32[${N},2] parameter(2)
    ROOT r = f32[5,2] scatter(base, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
)", kAdd), false);
  add("select_by_comparison", {{"N", 6}}, Entry(R"(
    x = f32[${N},3] parameter(0)
    y = f32[3] parameter(1)
    b = f32[${N},3] broadcast(y), dimensions={1}
    c = pred[${N},3] compare(x, b), direction=LT
    ROOT r = f32[${N},3] select(c, b, x)
)"));
  add("counted_loop", {{"N", 6}}, Entry(R"(
    x = f32[${N}] parameter(0)
    n = s32[] parameter(1)
    z = s32[] constant(0)
    init = (s32[], s32[], f32[${N}]) tuple(z, n, x)
    w = (s32[], s32[], f32[${N}]) while(init), condition=cond, body=body
    y = f32[${N}] get-tuple-element(w), index=2
    zero = f32[] constant(0)
    s = f32[] reduce(y, zero), dimensions={0}, to_apply=add
    ROOT t = (f32[${N}], f32[]) tuple(y, s)
)", std::string(kAdd) + R"(
cond { p = (s32[], s32[], f32[${N}]) parameter(0)  i = s32[] get-tuple-element(p), index=0  n = s32[] get-tuple-element(p), index=1  ROOT r = pred[] compare(i, n), direction=LT }
body {
  p = (s32[], s32[], f32[${N}]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] get-tuple-element(p), index=1
  x = f32[${N}] get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[${N}] add(x, x)
  ROOT t = (s32[], s32[], f32[${N}]) tuple(j, n, y)
}
)"), false);
  // As lax.scan is exported: as many slices as there are, a result as long, and what the last one leaves.
  add("scan", {{"N", 6}}, Entry(R"(
    x = f32[${N},3] parameter(0)
    zero = f32[] constant(0)
    carry = f32[3] broadcast(zero), dimensions={}
    zeros = f32[6,3] broadcast(zero), dimensions={}
    n = s32[] get-dimension-size(x), dimensions={0}
    y = f32[${N},3] @resize_zeros
    i = s32[] constant(0)
    init = (s32[], s32[], f32[3], f32[${N},3], f32[${N},3]) tuple(i, n, carry, x, y)
    w = (s32[], s32[], f32[3], f32[${N},3], f32[${N},3]) while(init), condition=cond, body=body
    c = f32[3] get-tuple-element(w), index=2
    ys = f32[${N},3] get-tuple-element(w), index=4
    ROOT t = (f32[3], f32[${N},3]) tuple(c, ys)
)", R"(
cond { p = (s32[], s32[], f32[3], f32[${N},3], f32[${N},3]) parameter(0)  i = s32[] get-tuple-element(p), index=0  n = s32[] get-tuple-element(p), index=1  ROOT r = pred[] compare(i, n), direction=LT }
body {
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
  ROOT t = (s32[], s32[], f32[3], f32[${N},3], f32[${N},3]) tuple(j, n, d, x, v)
}
)"), false);
  add("scan_op", {{"N", 6}}, Entry(R"(
    x = f32[${N},3] parameter(0)
    c = f32[3] parameter(1)
    ROOT r = (f32[${N},3], f32[3]) scan(x, c), dimensions={0}, num_carries=1, to_apply=step
)", R"(
step { x = f32[3] parameter(0)  c = f32[3] parameter(1)  s = f32[3] add(x, c)  t = f32[3] tanh(s)  m = f32[3] multiply(c, x)  ROOT r = (f32[3], f32[3]) tuple(m, t) }
)"), false);
  add("scan_op_reverse", {{"N", 6}, {"M", 4}}, Entry(R"(
    x = f32[${M},${N},2] parameter(0)
    y = f32[${M},${N},2] parameter(1)
    c = f32[${M},2] parameter(2)
    i = s32[] constant(0)
    w = (f32[${M},${N},2], f32[${M},2], s32[]) scan(x, y, c, i), dimensions={1}, is_reverse=true, num_carries=2, to_apply=step
    a = f32[${M},${N},2] get-tuple-element(w), index=0
    b = f32[${M},2] get-tuple-element(w), index=1
    d = s32[] get-tuple-element(w), index=2
    z = f32[] constant(0)
    t = f32[${N},2] reduce(a, z), dimensions={0}, to_apply=add
    ROOT r = (f32[${M},${N},2], f32[${M},2], s32[], f32[${N},2]) tuple(a, b, d, t)
)", std::string(kAdd) + R"(
step {
  x = f32[${M},2] parameter(0)
  y = f32[${M},2] parameter(1)
  c = f32[${M},2] parameter(2)
  i = s32[] parameter(3)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  s = f32[${M},2] add(x, c)
  t = f32[${M},2] tanh(s)
  m = f32[${M},2] multiply(c, y)
  ROOT r = (f32[${M},2], f32[${M},2], s32[]) tuple(m, t, j)
}
)"), false);
  add("scan_op_beside", {{"N", 4}}, Entry(R"(
    x = f32[5,${N}] parameter(0)
    z = f32[] constant(0)
    c = f32[] parameter(1)
    w = (f32[5,${N}], f32[]) scan(x, c), dimensions={0}, num_carries=1, to_apply=step
    a = f32[5,${N}] get-tuple-element(w), index=0
    b = f32[] get-tuple-element(w), index=1
    ROOT r = (f32[5,${N}], f32[]) tuple(a, b)
)", std::string(kAdd) + R"(
step { x = f32[${N}] parameter(0)  c = f32[] parameter(1)  z = f32[] constant(0)  s = f32[] reduce(x, z), dimensions={0}, to_apply=add  t = f32[] add(c, s)
  b = f32[${N}] broadcast(t), dimensions={}  m = f32[${N}] multiply(b, x)  ROOT r = (f32[${N}], f32[]) tuple(m, t) }
)"), false);
  add("mixed_reducer", {{"N", 9}}, Entry(R"(
    x = bf16[${N}] parameter(0)
    zero = f32[] constant(0)
    ROOT r = f32[] reduce(x, zero), dimensions={0}, to_apply=add
)", kAdd), false);
  add("mixed_windows", {{"N", 4}}, Entry(R"(
    x = bf16[2,${2N}] parameter(0)
    low = f32[] constant(-inf)
    ROOT r = f32[2,${N}] reduce-window(x, low), window={size=1x2 stride=1x2}, to_apply=max
)", kMax));
  // The second parameter on the left.
  add("select_and_scatter", {{"N", 8}}, Entry(R"(
    x = f32[${N}] parameter(0)
    s = f32[${N}] parameter(1)
    zero = f32[] constant(0)
    ROOT r = f32[${N}] select-and-scatter(x, s, zero), window={size=3 stride=1 pad=1_1}, select=largest, scatter=add
)", std::string(kAdd) + "largest { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] compare(b, a), direction=LE }\n"), false);
  add("starts_in_one_array", {{"N", 6}}, Entry(R"(
    x = f32[4,${N}] parameter(0)
    u = f32[1,${N}] parameter(1)
    s = s32[2] constant({1, 0})
    ROOT r = f32[4,${N}] dynamic-update-slice(x, u, s)
)"));
  // Windows that are not whole are skipped, as those at places of padding.
  add("scatter_windows", {{"N", 6}}, Entry(R"(
    base = f32[${N+3}] parameter(0)
    u = f32[4,3] parameter(1)
    i = s32[4,1] constant({{0}, {2}, {4}, {-1}})
    ROOT r = f32[${N+3}] scatter(base, i, u), update_window_dims={1}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
)", kAdd));
  add("scatter_of_smaller_windows", {{"N", 5}}, Entry(R"(
    base = f32[3,${2N+1}] parameter(0)
    u = f32[2,${N}] parameter(1)
    i = s32[2,1] constant({{2}, {0}})
    ROOT r = f32[3,${2N+1}] scatter(base, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=last
)", "last { a = f32[] parameter(0)  ROOT b = f32[] parameter(1) }\n"));
  // Places in types that do not hold the size, or that s32 does not hold.
  add("places_in_narrow_types", {{"N", 40}}, Entry(R"(
    x = f32[${N+230}] parameter(0)
    start = s8[] constant(100)
    at = u8[3] constant({3, 100, 200})
    s = f32[4] dynamic-slice(x, start), dynamic_slice_sizes={4}
    g = f32[3] gather(x, at), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}
    ROOT r = (f32[4], f32[3]) tuple(s, g)
)"));
  add("places_beyond_32_bits", {{"N", 6}}, Entry(R"(
    x = f32[${N+2}] parameter(0)
    u = f32[2] parameter(1)
    far = s64[] constant(4294967296)
    before = s64[] constant(-4294967295)
    high = u32[] constant(3000000000)
    at = s64[3] constant({4294967296, -4294967295, 1})
    y = f32[${N+2}] dynamic-update-slice(x, u, far)
    z = f32[${N+2}] dynamic-update-slice(y, u, high)
    a = f32[2] dynamic-slice(z, before), dynamic_slice_sizes={2}
    g = f32[3] gather(z, at), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}
    ROOT r = (f32[${N+2}], f32[2], f32[3]) tuple(z, a, g)
)"));
  add("scatter_by_bytes", {{"N", 8}}, Entry(R"(
    base = f32[300] parameter(0)
    i = u8[${N}] parameter(1)
    u = f32[${N}] parameter(2)
    ROOT r = f32[300] scatter(base, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
)", kAdd));
  add("select_and_scatter_from_ten", {{"N", 5}}, Entry(R"(
    x = f32[${2N+1}] parameter(0)
    s = f32[${N}] parameter(1)
    ten = f32[] constant(10)
    ROOT r = f32[${2N+1}] select-and-scatter(x, s, ten), window={size=2 stride=2}, select=largest, scatter=add
)", std::string(kAdd) + "largest { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=GE }\n"), false);
  add("bits", {{"N", 5}}, Entry(R"(
    x = f32[${N}] parameter(0)
    b = s32[${N}] bitcast-convert(x)
    h = u16[${N},2] bitcast-convert(x)
    ROOT r = (s32[${N}], u16[${N},2]) tuple(b, h)
)"));
  add("largest_complex", {{"N", 6}}, Entry(R"(
    x = c64[${N}] parameter(0)
    low = c64[] constant((-1e30, 0))
    ROOT r = c64[] reduce(x, low), dimensions={0}, to_apply=larger
)", "larger { a = c64[] parameter(0)  b = c64[] parameter(1)  ROOT c = c64[] maximum(a, b) }\n"));
  add("branch_on_mean", {{"N", 5}}, Entry(R"(
    x = f32[${N}] parameter(0)
    zero = f32[] constant(0)
    s = f32[] reduce(x, zero), dimensions={0}, to_apply=add
    p = pred[] compare(s, zero), direction=GT
    ROOT r = f32[${N}] conditional(p, x, x), true_computation=relu, false_computation=sigmoid
)", std::string(kAdd) + R"(
relu { x = f32[${N}] parameter(0)  z = f32[] constant(0)  b = f32[${N}] broadcast(z), dimensions={}  ROOT r = f32[${N}] maximum(x, b) }
sigmoid { x = f32[${N}] parameter(0)  ROOT r = f32[${N}] logistic(x) }
)"), false);
  return cases;
}

// What has another form at a static size than at a bound: {bounded, static}.
std::string Forms(std::string text, const std::map<std::string, int64_t>& sizes, bool bounded) {
  const auto replace = [&](const std::string& what, const std::string& with) {
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) text.replace(at, what.size(), with);
  };
  const int64_t n = sizes.contains("N") ? sizes.at("N") : 0;
  const std::string s = std::to_string(n), before = std::to_string(std::max<int64_t>(n - 1, 0));
  replace("@resize_i", bounded ? "set-dimension-size(i, n), dimensions={1}" : "slice(i), slice={[0:3], [0:" + s + "]}");
  const std::string cumsum = "reduce-window(x, zero), window={size=" + std::to_string(std::max<int64_t>(n, 1)) + "x1 pad=" + before + "_0x0_0}, to_apply=add";
  replace("@resize_zeros", bounded ? "set-dimension-size(zeros, n), dimensions={0}" : "slice(zeros), slice={[0:" + s + "], [0:3]}");
  replace("@n", std::to_string(std::max<int64_t>(n, 1)));
  replace("@b", before);
  replace("@cumsum", n == 0 ? "copy(x)" : cumsum);
  return text;
}

}  // namespace

const std::vector<SizedCase>& SizedCases() {
  static const std::vector<SizedCase> kCases = Make();
  return kCases;
}

std::string AtSizes(const std::string& text, const std::map<std::string, int64_t>& sizes, bool bounded) {
  static const std::regex kSize(R"(\$\{(\d*)([A-Z])(?:\+(\d+))?\})");
  const std::string in = Forms(text, sizes, bounded);
  std::string out;
  auto last = in.cbegin();
  for (std::sregex_iterator it(in.begin(), in.end(), kSize), end; it != end; ++it) {
    const std::smatch& m = *it;
    out.append(last, m[0].first);
    const int64_t factor = m[1].length() > 0 ? std::stoll(m[1].str()) : 1, addend = m[3].length() > 0 ? std::stoll(m[3].str()) : 0;
    out += (bounded ? "<=" : "") + std::to_string(factor * sizes.at(m[2].str()) + addend);
    last = m[0].second;
  }
  out.append(last, in.cend());
  return out;
}

std::vector<std::map<std::string, int64_t>> AllSizes(const SizedCase& sized, size_t most) {
  std::vector<std::map<std::string, int64_t>> all = {{}};
  for (const auto& [name, bound] : sized.bounds) {
    std::vector<std::map<std::string, int64_t>> longer;
    for (const auto& sizes : all) {
      for (int64_t size = 0; size <= bound; ++size) {
        longer.push_back(sizes);
        longer.back()[name] = size;
      }
    }
    all = std::move(longer);
  }
  if (all.size() <= most) return all;
  std::mt19937_64 random(all.size());
  std::shuffle(all.begin() + 1, all.end() - 1, random);
  std::swap(all[1], all.back());
  all.resize(most);
  return all;
}

}  // namespace hlorun::testing_support
