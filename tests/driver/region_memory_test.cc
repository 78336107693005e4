// Regions whose values take turns in scratch memory: a loop that is joined with another one must not write where that
// one still reads.
#include "tests/driver/evaluator_results.h"

namespace hlorun {
namespace {

// Of a hidden Markov model: what is known of each step from those before it and from those behind it, row by row. The
// two arrays of 299 rows lie in scratch memory, and so does the second of the arrays of 300 rows that are picked from
// them, where the first array of 299 lay: in a loop of both, rows would be overwritten that are still to be picked.
constexpr const char* kBothWays = R"(HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
body {
  t = (s32[], f32[16], f32[299,16]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  last = f32[16] get-tuple-element(t), index=1
  rows = f32[299,16] get-tuple-element(t), index=2
  wave = f32[16] cosine(last)
  none = f32[] constant(0)
  sum = f32[] reduce(wave, none), dimensions={0}, to_apply=add
  sums = f32[16] broadcast(sum), dimensions={}
  both = f32[16] add(wave, sums)
  little = f32[] constant(0.03)
  littles = f32[16] broadcast(little), dimensions={}
  next = f32[16] multiply(both, littles)
  row = f32[1,16] reshape(next)
  zero = s32[] constant(0)
  filled = f32[299,16] dynamic-update-slice(rows, row, i, zero)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], f32[16], f32[299,16]) tuple(j, next, filled)
}
condition {
  t = (s32[], f32[16], f32[299,16]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(299)
  ROOT go = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[16] parameter(0)
  y = f32[16] parameter(1)
  zero = s32[] constant(0)
  nothing = f32[] constant(0)
  none = f32[299,16] broadcast(nothing), dimensions={}
  forth = (s32[], f32[16], f32[299,16]) tuple(zero, x, none)
  forth_all = (s32[], f32[16], f32[299,16]) while(forth), condition=condition, body=body
  before = f32[299,16] get-tuple-element(forth_all), index=2
  back = (s32[], f32[16], f32[299,16]) tuple(zero, y, none)
  back_all = (s32[], f32[16], f32[299,16]) while(back), condition=condition, body=body
  behind = f32[299,16] get-tuple-element(back_all), index=2
  at = s32[300] parameter(2)
  first = f32[1,16] reshape(x)
  all_before = f32[300,16] concatenate(first, before), dimensions={0}
  a = f32[300,1,16] gather(all_before, at), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,16}
  end = f32[1,16] reshape(y)
  all_behind = f32[300,16] concatenate(end, behind), dimensions={0}
  b = f32[300,1,16] gather(all_behind, at), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,16}
  both = f32[300,1,16] multiply(a, b)
  sizes = f32[300,1,16] abs(both)
  rows = f32[300,16] reshape(sizes)
  total = f32[300] reduce(rows, nothing), dimensions={1}, to_apply=add
  totals = f32[300,1,16] broadcast(total), dimensions={0}
  ROOT share = f32[300,1,16] divide(both, totals)
})";

// Softmaxes of one short row, again and again in its own place, and of what a product makes: each element is computed
// from all of the row, which must still be there.
constexpr const char* kRowsInPlace = R"(HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
most { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] maximum(a, b) }
body {
  t = (s32[], f32[1,32], f32[32,32]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[1,32] get-tuple-element(t), index=1
  w = f32[32,32] get-tuple-element(t), index=2
  h = f32[1,32] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  least = f32[] constant(-inf)
  none = f32[] constant(0)
  m = f32[1] reduce(h, least), dimensions={1}, to_apply=most
  ms = f32[1,32] broadcast(m), dimensions={0}
  d = f32[1,32] subtract(h, ms)
  e = f32[1,32] exponential(d)
  s = f32[1] reduce(e, none), dimensions={1}, to_apply=add
  ss = f32[1,32] broadcast(s), dimensions={0}
  p = f32[1,32] divide(e, ss)
  m2 = f32[1] reduce(p, least), dimensions={1}, to_apply=most
  ms2 = f32[1,32] broadcast(m2), dimensions={0}
  d2 = f32[1,32] subtract(p, ms2)
  e2 = f32[1,32] exponential(d2)
  s2 = f32[1] reduce(e2, none), dimensions={1}, to_apply=add
  ss2 = f32[1,32] broadcast(s2), dimensions={0}
  p2 = f32[1,32] divide(e2, ss2)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], f32[1,32], f32[32,32]) tuple(j, p2, w)
}
condition {
  t = (s32[], f32[1,32], f32[32,32]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(5)
  ROOT go = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[1,32] parameter(0)
  w = f32[32,32] parameter(1)
  zero = s32[] constant(0)
  start = (s32[], f32[1,32], f32[32,32]) tuple(zero, x, w)
  end = (s32[], f32[1,32], f32[32,32]) while(start), condition=condition, body=body
  ROOT r = f32[1,32] get-tuple-element(end), index=1
})";

TEST(RegionMemory, RowsAreReadBeforeTheyAreWritten) { ExpectEvaluatorsResult(kRowsInPlace); }
TEST(RegionMemory, JoinedLoopsDoNotWriteWhatOneReads) { ExpectEvaluatorsResult(kBothWays); }

}  // namespace
}  // namespace hlorun
