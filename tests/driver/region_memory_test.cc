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

TEST(RegionMemory, JoinedLoopsDoNotWriteWhatOneReads) { ExpectEvaluatorsResult(kBothWays); }

}  // namespace
}  // namespace hlorun
