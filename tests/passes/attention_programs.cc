#include "tests/passes/attention_programs.h"

#include <fmt/format.h>

#include "tests/passes/replaced.h"

namespace hlorun {
namespace {

constexpr const char* kReducers = R"(HloModule m
add { a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = f32[] add(a, b) }
most { a = f32[] parameter(0)
       b = f32[] parameter(1)
       ROOT c = f32[] maximum(a, b) }
)";

// p = softmax of x along the last of B,R,S; x is of the type TYPE.
constexpr const char* kSoftmax = R"(
  least = f32[] constant(-inf)
  zero = f32[] constant(0)
  w = f32[B,R,S] convert(x)
  m = f32[B,R] reduce(w, least), dimensions={2}, to_apply=most
  ms = f32[B,R,S] broadcast(m), dimensions={0,1}
  d = f32[B,R,S] subtract(w, ms)
  e = f32[B,R,S] exponential(d)
  t = f32[B,R] reduce(e, zero), dimensions={2}, to_apply=add
  ts = f32[B,R,S] broadcast(t), dimensions={0,1}
  q0 = f32[B,R,S] divide(e, ts)
  p = TYPE[B,R,S] convert(q0)
)";

// Of B batches, R rows of queries and S keys; `between` makes x of the scores s, `end` is the root.
std::string Attention(const std::string& type, const std::vector<int64_t>& sizes, const std::string& more_parameters,
                      const std::string& between, const std::string& end) {
  const std::string text = fmt::format(R"({}
ENTRY e {{
  q = TYPE[B,R,D] parameter(0)
  k = TYPE[B,S,D] parameter(1)
  v = TYPE[B,S,D] parameter(2)
{}
  s = TYPE[B,R,S] dot(q, k), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{2}}
{}{}{}
}})",
                                       kReducers, more_parameters, between, kSoftmax, end);
  return Replaced(text, {{"TYPE", type},
                         {"[B,", fmt::format("[{},", sizes[0])},
                         {",R,", fmt::format(",{},", sizes[1])},
                         {",R]", fmt::format(",{}]", sizes[1])},
                         {",S,", fmt::format(",{},", sizes[2])},
                         {",S]", fmt::format(",{}]", sizes[2])},
                         {",D]", fmt::format(",{}]", sizes[3])}});
}

constexpr const char* kScaled = R"(
  eighth = TYPE[] constant(0.125)
  eighths = TYPE[B,R,S] broadcast(eighth), dimensions={}
  x = TYPE[B,R,S] multiply(s, eighths)
)";
constexpr const char* kOfValues =
    "  ROOT o = TYPE[B,R,D] dot(p, v), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
    "rhs_contracting_dims={1}";

// Positions of rows before those of columns are left out.
constexpr const char* kCausal = R"(
  rows = s32[B,R,S] iota(), iota_dimension=1
  columns = s32[B,R,S] iota(), iota_dimension=2
  sees = pred[B,R,S] compare(rows, columns), direction=GE
  none = TYPE[] constant(-inf)
  nones = TYPE[B,R,S] broadcast(none), dimensions={}
  x = TYPE[B,R,S] select(sees, s, nones)
)";

// Batches of 2 times 4 heads, as a reshape has them, with a mask that heads share.
constexpr const char* kMasked = R"(
  heads = TYPE[2,4,R,S] reshape(s)
  masks = TYPE[2,4,R,S] broadcast(mask), dimensions={0,2,3}
  masked = TYPE[2,4,R,S] add(heads, masks)
  x = TYPE[B,R,S] reshape(masked)
)";

// Numbers of all scores, as a counter of random numbers has them: a tile's are not a tile's count.
constexpr const char* kNumbered = R"(
  numbers = s32[COUNT] iota(), iota_dimension=0
  places = s32[B,R,S] reshape(numbers)
  limit = s32[] constant(50000)
  limits = s32[B,R,S] broadcast(limit), dimensions={}
  few = pred[B,R,S] compare(places, limits), direction=LT
  none = TYPE[] constant(-1)
  nones = TYPE[B,R,S] broadcast(none), dimensions={}
  x = TYPE[B,R,S] select(few, s, nones)
)";

// A bias of each batch's own, of an odd number of elements.
constexpr const char* kBiased = "  x = TYPE[B,R,S] add(s, bias)";

}  // namespace

std::vector<AttentionProgram> AttentionPrograms() {
  const std::string mask = "  mask = TYPE[2,R,S] parameter(3)", values = kOfValues;
  return {
      {.name = "plain", .text = Attention("f32", {8, 128, 128, 16}, "", kScaled, values)},
      // The tile is a batch whole.
      {.name = "short_rows", .text = Attention("f32", {12, 97, 83, 16}, "", kScaled, values)},
      {.name = "bf16", .text = Attention("bf16", {8, 256, 256, 32}, "", kScaled, values)},
      {.name = "f16", .text = Attention("f16", {8, 192, 192, 32}, "", kScaled, values)},
      {.name = "causal", .text = Attention("f32", {8, 128, 128, 16}, "", kCausal, values)},
      {.name = "masked", .text = Attention("f32", {8, 128, 128, 16}, mask, kMasked, values)},
      {.name = "biased",
       .text = Attention("f16", {12, 97, 83, 16}, "  bias = TYPE[B,R,S] parameter(3)", kBiased, values)},
      {.name = "numbered",
       .text = Replaced(Attention("f32", {8, 128, 128, 16}, "", kNumbered, values), {{"COUNT", "131072"}}),
       .goes_by_tiles = false},
      // The scores are wanted.
      {.name = "scores",
       .text = Attention("f32", {8, 128, 128, 16}, "", kScaled,
                         Replaced(values, {{"ROOT o", "o"}}) + "\n  ROOT r = (TYPE[B,R,D], TYPE[B,R,S]) tuple(o, p)"),
       .goes_by_tiles = false},
      // What rows add up to leaves, too.
      {.name = "sums",
       .text = Attention("f32", {8, 128, 128, 16}, "", kScaled,
                         Replaced(values, {{"ROOT o", "o"}}) + "\n  ROOT r = (TYPE[B,R,D], f32[B,R]) tuple(o, t)")},
      // One array as both sides, of which one is cut and the other is not.
      {.name = "with_itself",
       .text = Attention("f32", {8, 128, 128, 16}, "", kScaled, Replaced(values, {{"dot(p, v)", "dot(p, q)"}}))},
      // Batches lie between rows: a kernel of its own brings those of a batch together.
      {.name = "heads_inside",
       .text = Replaced(Attention("f32", {8, 128, 128, 16}, "", kScaled, values),
                        {{"q = f32[8,128,16] parameter(0)",
                          "given = f32[128,8,16] parameter(0)\n  q = f32[8,128,16] transpose(given), "
                          "dimensions={1,0,2}"}})},
      {.name = "perceptron",
       .text = std::string(kReducers) + R"(
ENTRY e {
  x = f32[1024,16] parameter(0)
  w = f32[16,128] parameter(1)
  u = f32[128,16] parameter(2)
  h = f32[1024,128] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[1024,128] tanh(h)
  ROOT o = f32[1024,16] dot(t, u), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})",
       .goes_by_tiles = false},
      {.name = "one_head", .text = std::string(kReducers) + R"(
ENTRY e {
  x = f32[1024,16] parameter(0)
  w = f32[16,128] parameter(1)
  u = f32[128,16] parameter(2)
  zero = f32[] constant(0)
  h = f32[1024,128] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[1024] reduce(h, zero), dimensions={1}, to_apply=most
  ts = f32[1024,128] broadcast(t), dimensions={0}
  d = f32[1024,128] subtract(h, ts)
  ROOT o = f32[1024,16] dot(d, u), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})"},
      // What two of them make their scores of, both have.
      {.name = "two_with_one_mask", .text = std::string(kReducers) + R"(
ENTRY e {
  q = f32[8,128,16] parameter(0)
  k = f32[8,128,16] parameter(1)
  mask = f32[128,128] parameter(2)
  masks = f32[8,128,128] broadcast(mask), dimensions={1,2}
  s = f32[8,128,128] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
  masked = f32[8,128,128] add(s, masks)
  zero = f32[] constant(0)
  m = f32[8,128] reduce(masked, zero), dimensions={2}, to_apply=most
  ms = f32[8,128,128] broadcast(m), dimensions={0,1}
  p = f32[8,128,128] subtract(masked, ms)
  o = f32[8,128,16] dot(p, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
  s2 = f32[8,128,128] dot(o, q), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
  masked2 = f32[8,128,128] multiply(s2, masks)
  m2 = f32[8,128] reduce(masked2, zero), dimensions={2}, to_apply=most
  ms2 = f32[8,128,128] broadcast(m2), dimensions={0,1}
  p2 = f32[8,128,128] subtract(masked2, ms2)
  ROOT o2 = f32[8,128,16] dot(p2, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
})"},
      // A gradient: both of its products contract what lies between, one along rows.
      {.name = "gradient",
       .text = fmt::format(R"({}
ENTRY e {{
  g = f32[9,96,16] parameter(0)
  v = f32[9,96,16] parameter(1)
  q = f32[9,96,16] parameter(2)
  k = f32[9,96,16] parameter(3)
  p = f32[9,96,96] parameter(4)
  zero = f32[] constant(0)
  dp = f32[9,96,96] dot(g, v), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{2}}
  pdp = f32[9,96,96] multiply(p, dp)
  t = f32[9,96] reduce(pdp, zero), dimensions={{2}}, to_apply=add
  ts = f32[9,96,96] broadcast(t), dimensions={{0,1}}
  less = f32[9,96,96] subtract(dp, ts)
  ds = f32[9,96,96] multiply(p, less)
  dq = f32[9,96,16] dot(ds, k), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}
  dk = f32[9,96,16] dot(ds, q), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
  ROOT r = (f32[9,96,16], f32[9,96,16]) tuple(dq, dk)
}})",
                           kReducers)},
  };
}

}  // namespace hlorun
