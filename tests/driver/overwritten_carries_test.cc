// Loops whose stacked results are not stored first: on the device, in memory that others have used, the evaluator's
// values.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/driver/evaluator_results.h"

namespace hlorun {
namespace {

// xs: f32[64,2048], row by row: `body` makes `y` and `z` of `x`, `next_ys` of `ys` (which starts as `start`) at row
// `at`, and `next_zs` of `zs`. The result is ys and zs, added.
std::string Scan(const std::string& start, const std::string& at, const std::string& next_ys,
                 const std::string& next_zs) {
  return fmt::format(R"(HloModule scan
condition {{ q = (s32[], f32[64,2048], f32[64,2048], f32[64,2048]) parameter(0)
            counter = s32[] get-tuple-element(q), index=0
            end = s32[] constant(64)
            ROOT c = pred[] compare(counter, end), direction=LT }}
body {{ p = (s32[], f32[64,2048], f32[64,2048], f32[64,2048]) parameter(0)
       i = s32[] get-tuple-element(p), index=0
       ys = f32[64,2048] get-tuple-element(p), index=1
       zs = f32[64,2048] get-tuple-element(p), index=2
       xs = f32[64,2048] get-tuple-element(p), index=3
       one = s32[] constant(1)
       zero = s32[] constant(0)
       last = s32[] constant(63)
       back = s32[] subtract(last, i)
       x = f32[1,2048] dynamic-slice(xs, {1}, zero), dynamic_slice_sizes={{1,2048}}
       old = f32[1,2048] dynamic-slice(zs, {1}, zero), dynamic_slice_sizes={{1,2048}}
       y = f32[1,2048] tanh(x)
       z = f32[1,2048] negate(x)
       w = f32[1,2048] add(x, old)
       next_ys = f32[64,2048] {2}
       next_zs = f32[64,2048] {3}
       j = s32[] add(i, one)
       ROOT t = (s32[], f32[64,2048], f32[64,2048], f32[64,2048]) tuple(j, next_ys, next_zs, xs) }}
ENTRY e {{ xs = f32[64,2048] parameter(0)
          given = f32[64,2048] parameter(1)
          first = s32[] constant(0)
          number = f32[] constant(7)
          sevens = f32[64,2048] broadcast(number), dimensions={{}}
          start = (s32[], f32[64,2048], f32[64,2048], f32[64,2048]) tuple(first, {0}, sevens, xs)
          loop = (s32[], f32[64,2048], f32[64,2048], f32[64,2048]) while(start), condition=condition, body=body
          a = f32[64,2048] get-tuple-element(loop), index=1
          b = f32[64,2048] get-tuple-element(loop), index=2
          c = f32[64,2048] add(a, b)
          ROOT d = f32[64,2048] add(c, given) }})",
                     start, at, next_ys, next_zs);
}

std::string Update(const std::string& array, const std::string& value, const std::string& at) {
  return fmt::format("dynamic-update-slice({}, {}, {}, zero)", array, value, at);
}

TEST(OverwrittenCarries, TwoStacksThatStartAlike) {
  ExpectEvaluatorsResult(Scan("sevens", "i", Update("ys", "y", "i"), Update("zs", "z", "i")));
  ExpectEvaluatorsResult(Scan("sevens", "back", Update("ys", "y", "back"), Update("zs", "z", "i")));
}

TEST(OverwrittenCarries, AParameterStaysTheCallers) {
  ExpectEvaluatorsResult(Scan("given", "i", Update("ys", "y", "back"), Update("zs", "z", "i")));
}

TEST(OverwrittenCarries, WhatIsReadIsThere) {
  ExpectEvaluatorsResult(Scan("sevens", "i", Update("ys", "y", "i"), Update("zs", "w", "i")));
  // Half of the one is the other's, of the trip before.
  ExpectEvaluatorsResult(Scan("sevens", "back", Update("ys", "w", "i"), "copy(next_ys)"));
}

// Every fourth row of a parameter, up to some row.
TEST(OverwrittenCarries, CopiedBetweenRows) {
  ExpectEvaluatorsResult(R"(HloModule rows
condition { q = (s32[], f32[1024,512], f32[1024,512]) parameter(0)
  counter = s32[] get-tuple-element(q), index=0
  end = s32[] constant(250)
  ROOT c = pred[] compare(counter, end), direction=LT }
body { p = (s32[], f32[1024,512], f32[1024,512]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  ys = f32[1024,512] get-tuple-element(p), index=1
  xs = f32[1024,512] get-tuple-element(p), index=2
  one = s32[] constant(1)
  zero = s32[] constant(0)
  four = s32[] constant(4)
  group = s32[] multiply(i, four)
  place = s32[] add(group, one)
  x = f32[2,512] dynamic-slice(xs, i, zero), dynamic_slice_sizes={2,512}
  y = f32[2,512] cosine(x)
  next = f32[1024,512] dynamic-update-slice(ys, y, place, zero)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[1024,512], f32[1024,512]) tuple(j, next, xs) }
ENTRY e { given = f32[1024,512] parameter(0)
  xs = f32[1024,512] parameter(1)
  first = s32[] constant(0)
  start = (s32[], f32[1024,512], f32[1024,512]) tuple(first, given, xs)
  loop = (s32[], f32[1024,512], f32[1024,512]) while(start), condition=condition, body=body
  a = f32[1024,512] get-tuple-element(loop), index=1
  ROOT b = f32[1024,512] add(a, given) })");
}

// A row of 512 for each of 1,024 of another, in each trip of an outer loop.
TEST(OverwrittenCarries, WithinAnotherLoop) {
  ExpectEvaluatorsResult(R"(HloModule nested
inner_condition { q = (s32[], f32[1024,512], f32[512]) parameter(0)
  counter = s32[] get-tuple-element(q), index=0
  end = s32[] constant(1024)
  ROOT c = pred[] compare(counter, end), direction=LT }
inner { p = (s32[], f32[1024,512], f32[512]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  ys = f32[1024,512] get-tuple-element(p), index=1
  x = f32[512] get-tuple-element(p), index=2
  one = s32[] constant(1)
  zero = s32[] constant(0)
  half = f32[] constant(0.5)
  halves = f32[512] broadcast(half), dimensions={}
  y = f32[512] multiply(x, halves)
  z = f32[512] sine(y)
  row = f32[1,512] reshape(z)
  next = f32[1024,512] dynamic-update-slice(ys, row, i, zero)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[1024,512], f32[512]) tuple(j, next, z) }
outer_condition { q = (s32[], f32[1024,512], f32[512]) parameter(0)
  counter = s32[] get-tuple-element(q), index=0
  end = s32[] constant(3)
  ROOT c = pred[] compare(counter, end), direction=LT }
outer { p = (s32[], f32[1024,512], f32[512]) parameter(0)
  k = s32[] get-tuple-element(p), index=0
  sums = f32[1024,512] get-tuple-element(p), index=1
  x = f32[512] get-tuple-element(p), index=2
  first = s32[] constant(0)
  one = s32[] constant(1)
  number = f32[] constant(7)
  sevens = f32[1024,512] broadcast(number), dimensions={}
  start = (s32[], f32[1024,512], f32[512]) tuple(first, sevens, x)
  loop = (s32[], f32[1024,512], f32[512]) while(start), condition=inner_condition, body=inner
  ys = f32[1024,512] get-tuple-element(loop), index=1
  last = f32[512] get-tuple-element(loop), index=2
  next = f32[1024,512] add(sums, ys)
  wave = f32[512] cosine(last)
  l = s32[] add(k, one)
  ROOT t = (s32[], f32[1024,512], f32[512]) tuple(l, next, wave) }
ENTRY e { x = f32[512] parameter(0)
  sums = f32[1024,512] parameter(1)
  first = s32[] constant(0)
  start = (s32[], f32[1024,512], f32[512]) tuple(first, sums, x)
  loop = (s32[], f32[1024,512], f32[512]) while(start), condition=outer_condition, body=outer
  ROOT a = f32[1024,512] get-tuple-element(loop), index=1 })");
}

}  // namespace
}  // namespace hlorun
