// What loops overwrite before they read it is not stored first.
#include "passes/control/overwritten_carries.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "passes/control/trip_form.h"
#include "passes/expand/uninitialized.h"
#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

using hlo::Opcode;

struct Scan {
  int64_t first = 0, step = 1, trips = 64;
  std::string direction = "LT";
  std::string place = "place = s32[] copy(i)";
  std::string value = "slice";  // of f32[1,512]
  std::string starts = "place, zero";
  std::string next = "next";             // of ys
  std::string before = {}, behind = {};  // of the update
  std::string condition = {}, next_xs = "xs";
};

// ys: f32[64,512] of sevens, of which each trip makes a part from a row of xs. (The evaluator makes zeros of memory as
// it is found.)
std::string TextOf(const Scan& s) {
  return fmt::format(R"(HloModule m
    condition {{ p = (s32[], f32[64,512], f32[64,512]) parameter(0)
                 i = s32[] get-tuple-element(p), index=0
                 n = s32[] constant({0})
                 {10}
                 ROOT c = pred[] compare(i, n), direction={1} }}
    body {{ p = (s32[], f32[64,512], f32[64,512]) parameter(0)
            i = s32[] get-tuple-element(p), index=0
            ys = f32[64,512] get-tuple-element(p), index=1
            xs = f32[64,512] get-tuple-element(p), index=2
            step = s32[] constant({2})
            j = s32[] add(i, step)
            zero = s32[] constant(0)
            one = s32[] constant(1)
            two = s32[] constant(2)
            rows = s32[] constant(64)
            last = s32[] constant(63)
            {3}
            slice = f32[1,512] dynamic-slice(xs, place, zero), dynamic_slice_sizes={{1,512}}
            pair = f32[2,512] dynamic-slice(xs, place, zero), dynamic_slice_sizes={{2,512}}
            half = f32[1,256] slice(slice), slice={{[0:1],[0:256]}}
            {8}
            next = f32[64,512] dynamic-update-slice(ys, {4}, {5})
            {9}
            ROOT t = (s32[], f32[64,512], f32[64,512]) tuple(j, {6}, {11}) }}
    ENTRY e {{ xs = f32[64,512] parameter(0)
               start = s32[] constant({7})
               number = f32[] constant(7)
               sevens = f32[64,512] broadcast(number), dimensions={{}}
               t = (s32[], f32[64,512], f32[64,512]) tuple(start, sevens, xs)
               l = (s32[], f32[64,512], f32[64,512]) while(t), condition=condition, body=body
               ROOT r = f32[64,512] get-tuple-element(l), index=1 }})",
                     s.first + s.step * s.trips, s.direction, s.step, s.place, s.value, s.starts, s.next, s.first,
                     s.before, s.behind, s.condition, s.next_xs);
}

bool IsDropped(const Scan& scan) {
  OverwrittenCarries pass;
  RunAndCompare(TextOf(scan), pass);
  const auto module = RunPass(TextOf(scan), pass);
  for (const auto& x : module->entry()->instructions()) {
    if (IsUninitialized(*x)) {
      EXPECT_EQ(Count(*module, Opcode::kBroadcast), 0);
      return true;
    }
  }
  return false;
}

TEST(OverwrittenCarries, StackedResultsOfScans) {
  EXPECT_TRUE(IsDropped({}));
  EXPECT_TRUE(IsDropped({.first = 3, .place = "three = s32[] constant(3)\nplace = s32[] subtract(i, three)"}));
  // Backwards: by the counter, or by what is left.
  EXPECT_TRUE(IsDropped({.first = 63, .step = -1, .direction = "GT"}));
  EXPECT_TRUE(IsDropped({.place = "place = s32[] subtract(last, i)"}));
  // As JAX's indices are kept within bounds.
  EXPECT_TRUE(IsDropped({.place = R"(less = pred[] compare(i, zero), direction=LT
                                     more = s32[] add(i, rows)
                                     place = s32[] select(less, more, i))"}));
  EXPECT_TRUE(IsDropped({.place = "place = s32[] clamp(zero, i, last)"}));
}

TEST(OverwrittenCarries, PartsThatOverlapOrGoBeyond) {
  EXPECT_TRUE(IsDropped({.trips = 32, .place = "place = s32[] multiply(i, two)", .value = "pair"}));
  EXPECT_TRUE(IsDropped({.value = "pair"}));
  EXPECT_TRUE(IsDropped({.trips = 70}));               // kept within the array
  EXPECT_TRUE(IsDropped({.first = -3, .trips = 70}));  // on both sides
}

TEST(OverwrittenCarries, WhatIsLeftOutStays) {
  EXPECT_FALSE(IsDropped({.trips = 63}));
  EXPECT_FALSE(IsDropped({.first = 1, .trips = 63}));
  EXPECT_FALSE(IsDropped({.trips = 32, .place = "place = s32[] multiply(i, two)"}));  // every other row
  EXPECT_FALSE(IsDropped({.value = "half"}));                                         // half of each
  EXPECT_FALSE(IsDropped({.place = "place = s32[] remainder(i, two)"}));
  EXPECT_FALSE(IsDropped({.place = "place = s32[] minimum(i, two)"}));  // neither in all trips
  EXPECT_FALSE(IsDropped({.starts = "zero, zero"}));
}

TEST(OverwrittenCarries, WhatIsReadStays) {
  EXPECT_FALSE(IsDropped(
      {.value = "sum", .before = R"(before = f32[1,512] dynamic-slice(ys, i, zero), dynamic_slice_sizes={1,512}
                              sum = f32[1,512] add(slice, before))"}));
  EXPECT_FALSE(IsDropped({.next = "twice", .behind = "twice = f32[64,512] add(next, next)"}));
  // By the condition; by somebody else who reads the same element; as another element of the next trip.
  EXPECT_FALSE(
      IsDropped({.condition = "some = f32[64,512] get-tuple-element(p), index=1\nother = f32[64,512] negate(some)"}));
  EXPECT_FALSE(
      IsDropped({.before = "again = f32[64,512] get-tuple-element(p), index=1\nother = f32[64,512] negate(again)"}));
  EXPECT_FALSE(IsDropped({.next_xs = "next"}));
}

// A parameter f32[1024,512] of which each trip replaces `part` rows, from `start` of 4 * i on; what the pass copies of
// it.
int64_t CopiedParts(int64_t trips, int64_t first, int64_t part, const std::string& header = "") {
  const std::string text = fmt::format(R"(HloModule m{3}
    condition {{ q = (s32[], f32[1024,512]) parameter(0)
                 at = s32[] get-tuple-element(q), index=0
                 n = s32[] constant({0})
                 ROOT c = pred[] compare(at, n), direction=LT }}
    body {{ p = (s32[], f32[1024,512]) parameter(0)
            i = s32[] get-tuple-element(p), index=0
            ys = f32[1024,512] get-tuple-element(p), index=1
            one = s32[] constant(1)
            zero = s32[] constant(0)
            four = s32[] constant(4)
            first = s32[] constant({1})
            group = s32[] multiply(i, four)
            place = s32[] add(group, first)
            number = f32[] constant(3)
            row = f32[{2},512] broadcast(number), dimensions={{}}
            next = f32[1024,512] dynamic-update-slice(ys, row, place, zero)
            j = s32[] add(i, one)
            ROOT t = (s32[], f32[1024,512]) tuple(j, next) }}
    ENTRY e {{ x = f32[1024,512] parameter(0)
               start = s32[] constant(0)
               t = (s32[], f32[1024,512]) tuple(start, x)
               l = (s32[], f32[1024,512]) while(t), condition=condition, body=body
               ROOT r = f32[1024,512] get-tuple-element(l), index=1 }})",
                                       trips, first, part, header);
  OverwrittenCarries pass;
  RunAndCompare(text, pass);
  return Count(*RunPass(text, pass), Opcode::kDynamicUpdateSlice) - 1;
}

TEST(OverwrittenCarries, ParametersAreCopiedBetweenWhatIsOverwritten) {
  EXPECT_EQ(CopiedParts(256, 0, 1), 1);
  EXPECT_EQ(CopiedParts(256, 3, 1), 1);
  EXPECT_EQ(CopiedParts(256, 1, 2), 2);
  EXPECT_EQ(CopiedParts(200, 1, 2), 3);  // and what is behind the last
  EXPECT_EQ(CopiedParts(256, 3, 2), 0);  // runs that two groups share
  EXPECT_EQ(CopiedParts(100, 0, 1), 0);  // too little
  EXPECT_EQ(CopiedParts(256, 0, 1, ", input_output_alias={ {}: (0, {}, may-alias) }"), 0);
}

// The oldest form of an update, whose starts are one array.
TEST(OverwrittenCarries, StartsInOneArrayStay) {
  EXPECT_FALSE(IsDropped({.starts = "places", .before = R"(row = s32[1] reshape(place)
                                       none = s32[1] reshape(zero)
                                       places = s32[2] concatenate(row, none), dimensions={0})"}));
}

TEST(OverwrittenCarries, SmallOnesStay) {
  std::string text = TextOf({});
  for (size_t at = 0; (at = text.find("512", at)) != std::string::npos;) text.replace(at, 3, "128");
  for (size_t at = 0; (at = text.find("256", at)) != std::string::npos;) text.replace(at, 3, "64");
  OverwrittenCarries pass;
  EXPECT_EQ(Count(*RunPass(text, pass), Opcode::kCustomCall), 0);
}

// Integers of a body that counts to 100 in steps of 2 from 10, each by name.
TEST(TripForms, WhatIntegersAre) {
  const auto module = Parse(R"(HloModule m
    condition { q = (s32[], s8[]) parameter(0)
                at = s32[] get-tuple-element(q), index=0
                end = s32[] constant(100)
                ROOT c = pred[] compare(at, end), direction=LT }
    body { p = (s32[], s8[]) parameter(0)
           i = s32[] get-tuple-element(p), index=0
           k = s8[] get-tuple-element(p), index=1
           two = s32[] constant(2)
           ten = s32[] constant(10)
           many = s32[] constant(100)
           j = s32[] add(i, two)
           three = s8[] constant(3)
           l = s8[] add(k, three)
           product = s32[] multiply(ten, i)
           square = s32[] multiply(i, i)
           narrow = s8[] convert(product)
           wide = s64[] convert(product)
           back = s32[] negate(i)
           below = pred[] compare(i, many), direction=LT
           of_all = s32[] select(below, back, ten)
           some = pred[] compare(i, ten), direction=GT
           of_some = s32[] select(some, back, ten)
           most = s32[] minimum(i, many)
           ROOT t = (s32[], s8[]) tuple(j, l) }
    ENTRY e { first = s32[] constant(10)
              one = s8[] constant(1)
              given = (s32[], s8[]) tuple(first, one)
              ROOT loop = (s32[], s8[]) while(given), condition=condition, body=body })");
  const hlo::Instruction& loop = *module->entry()->root();
  TripForms forms(loop, 45);
  const auto form = [&](const std::string& name) -> std::pair<int64_t, int64_t> {
    for (const auto& x : loop.while_body()->instructions()) {
      if (x->name() != name) continue;
      const std::optional<TripForm> found = forms.Of(*x);
      return found ? std::pair(found->first, found->step) : std::pair<int64_t, int64_t>(-1, -1);
    }
    ADD_FAILURE() << name;
    return {};
  };
  const std::pair<int64_t, int64_t> unknown(-1, -1);
  EXPECT_EQ(form("i"), std::pair(10L, 2L));
  EXPECT_EQ(form("j"), std::pair(12L, 2L));
  EXPECT_EQ(form("product"), std::pair(100L, 20L));
  EXPECT_EQ(form("wide"), std::pair(100L, 20L));
  EXPECT_EQ(form("back"), std::pair(-10L, -2L));
  EXPECT_EQ(form("of_all"), std::pair(-10L, -2L));
  EXPECT_EQ(form("most"), std::pair(10L, 2L));
  EXPECT_EQ(form("square"), unknown);
  EXPECT_EQ(form("of_some"), unknown);  // one side in the first trip, the other then
  EXPECT_EQ(form("narrow"), unknown);   // wraps around
  EXPECT_EQ(form("k"), unknown);        // does, after 42 trips
}

}  // namespace
}  // namespace hlorun::passes
