// Loops and conditionals.
#include <gtest/gtest.h>

#include "passes/control/control_flow.h"
#include "passes/control/trip_count.h"
#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

using hlo::Opcode;

// for (i = start; i <direction> bound; i += step) x = x * scale, with a carry that nothing needs.
std::string Loop(const char* type, const char* start, const char* direction, const char* bound, const char* step) {
  return fmt::format(R"(HloModule m
    condition {{ p = ({0}[], f32[], f32[], f32[2]) parameter(0)
                 i = {0}[] get-tuple-element(p), index=0
                 n = {0}[] constant({3})
                 ROOT c = pred[] compare(i, n), direction={2} }}
    body {{ p = ({0}[], f32[], f32[], f32[2]) parameter(0)
            i = {0}[] get-tuple-element(p), index=0
            x = f32[] get-tuple-element(p), index=1
            s = f32[] get-tuple-element(p), index=2
            u = f32[2] get-tuple-element(p), index=3
            d = {0}[] constant({4})
            j = {0}[] add(i, d)
            y = f32[] multiply(x, s)
            v = f32[2] negate(u)
            ROOT t = ({0}[], f32[], f32[], f32[2]) tuple(j, y, s, v) }}
    ENTRY e {{ x = f32[] parameter(0)
               u = f32[2] parameter(1)
               z = {0}[] constant({1})
               s = f32[] constant(0.5)
               t = ({0}[], f32[], f32[], f32[2]) tuple(z, x, s, u)
               w = ({0}[], f32[], f32[], f32[2]) while(t), condition=condition, body=body
               ROOT r = f32[] get-tuple-element(w), index=1 }})",
                     type, start, direction, bound, step);
}

std::optional<int64_t> Trips(const std::string& text) {
  const auto module = Parse(text);
  for (const auto& instruction : module->entry()->instructions()) {
    if (instruction->Is(Opcode::kWhile)) return TripCountOf(*instruction);
  }
  return std::nullopt;
}

TEST(TripCount, CountsUpAndDown) {
  EXPECT_EQ(Trips(Loop("s32", "0", "LT", "5", "1")), 5);
  EXPECT_EQ(Trips(Loop("s32", "0", "LT", "5", "2")), 3);
  EXPECT_EQ(Trips(Loop("s32", "0", "LE", "4", "2")), 3);
  EXPECT_EQ(Trips(Loop("s32", "9", "GT", "4", "-2")), 3);
  EXPECT_EQ(Trips(Loop("s32", "9", "GE", "5", "-2")), 3);
  EXPECT_EQ(Trips(Loop("u8", "0", "NE", "6", "2")), 3);
  EXPECT_EQ(Trips(Loop("s32", "7", "LT", "5", "1")), 0);
  EXPECT_EQ(Trips(Loop("s32", "5", "EQ", "5", "1")), 1);
}

TEST(TripCount, IsUnknownWhereTheCounterWrapsOrNeverArrives) {
  EXPECT_EQ(Trips(Loop("s32", "0", "LT", "5", "-1")), std::nullopt);
  EXPECT_EQ(Trips(Loop("s32", "0", "NE", "5", "2")), std::nullopt);
  EXPECT_EQ(Trips(Loop("s8", "0", "LE", "127", "1")), std::nullopt);
  EXPECT_EQ(Trips(Loop("s32", "0", "LT", "5", "0")), std::nullopt);
}

TEST(SimplifyControlFlow, DropsWhatNothingNeeds) {
  const std::string text = Loop("s32", "0", "LT", "5", "1");
  SimplifyControlFlow pass;
  RunAndCompare(text, pass);
  const auto module = RunPass(text, pass);
  for (const auto& instruction : module->entry()->instructions()) {
    if (!instruction->Is(Opcode::kWhile)) continue;
    EXPECT_EQ(instruction->shape().tuple_shapes().size(), 2u) << "the counter and x";
  }
}

TEST(SimplifyControlFlow, LoopsOfNoOrOneTrip) {
  SimplifyControlFlow pass;
  for (const char* bound : {"0", "1"}) {
    const std::string text = Loop("s32", "0", "LT", bound, "1");
    RunAndCompare(text, pass);
    EXPECT_EQ(Count(*RunPass(text, pass), Opcode::kWhile), 0);
  }
}

TEST(SimplifyControlFlow, KnownBranches) {
  constexpr const char* kText = R"(HloModule m
    f { a = f32[] parameter(0)
        ROOT r = f32[] negate(a) }
    g { a = f32[] parameter(0)
        ROOT r = f32[] exponential(a) }
    ENTRY e { x = f32[] parameter(0)
              p = pred[] constant(false)
              i = s32[] constant(-3)
              a = f32[] conditional(p, x, x), true_computation=f, false_computation=g
              ROOT r = f32[] conditional(i, a, a), branch_computations={f, g} })";
  SimplifyControlFlow pass;
  RunAndCompare(kText, pass);
  const auto module = RunPass(kText, pass);
  EXPECT_EQ(Count(*module, Opcode::kConditional), 0);
  EXPECT_EQ(module->entry()->root()->opcode(), Opcode::kExp);
}

}  // namespace
}  // namespace hlorun::passes
