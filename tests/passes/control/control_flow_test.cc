// Loops and conditionals.
#include <gtest/gtest.h>

#include "passes/control/control_flow.h"
#include "passes/control/loop_invariants.h"
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

// Two elements swapped are not passed on.
TEST(SimplifyControlFlow, WhatALoopPassesOnIsWhatItStartsAs) {
  constexpr const char* kText = R"(HloModule m
    body { s = (s32[], f32[4], f32[4], f32[4]) parameter(0)
           i = s32[] get-tuple-element(s), index=0
           one = s32[] constant(1)
           n = s32[] add(i, one)
           x = f32[4] get-tuple-element(s), index=1
           y = f32[4] get-tuple-element(s), index=2
           z = f32[4] get-tuple-element(s), index=3
           ROOT t = (s32[], f32[4], f32[4], f32[4]) tuple(n, x, z, y) }
    condition { s = (s32[], f32[4], f32[4], f32[4]) parameter(0)
           i = s32[] get-tuple-element(s), index=0
           five = s32[] constant(5)
           ROOT go = pred[] compare(i, five), direction=LT }
    ENTRY e { x = f32[4] parameter(0)
           y = f32[4] parameter(1)
           w = f32[4] negate(x)
           zero = s32[] constant(0)
           t = (s32[], f32[4], f32[4], f32[4]) tuple(zero, w, x, y)
           loop = (s32[], f32[4], f32[4], f32[4]) while(t), condition=condition, body=body
           a = f32[4] get-tuple-element(loop), index=1
           b = f32[4] get-tuple-element(loop), index=KEPT
           ROOT r = f32[4] add(a, b) })";
  const auto with = [&](const std::string& kept) {
    return std::string(kText).replace(std::string(kText).find("KEPT"), 4, kept);
  };
  SimplifyControlFlow pass;
  RunAndCompare(with("2"), pass);
  const auto swapped = RunPass(with("2"), pass);
  EXPECT_EQ(swapped->entry()->root()->operand(0)->opcode(), Opcode::kNegate);
  EXPECT_EQ(swapped->entry()->root()->operand(1)->opcode(), Opcode::kGetTupleElement);
  const auto passed = RunPass(with("1"), pass);
  EXPECT_EQ(passed->entry()->root()->operand(1)->opcode(), Opcode::kNegate);
}

// A token stands for what the loop has done, though the body hands it on.
TEST(SimplifyControlFlow, TokensComeFromTheLoop) {
  constexpr const char* kText = R"(HloModule m
    body { s = (s32[], token[]) parameter(0)
           i = s32[] get-tuple-element(s), index=0
           k = token[] get-tuple-element(s), index=1
           one = s32[] constant(1)
           n = s32[] add(i, one)
           o = token[] outfeed(i, k), outfeed_shape=s32[]
           ROOT t = (s32[], token[]) tuple(n, k) }
    condition { s = (s32[], token[]) parameter(0)
           i = s32[] get-tuple-element(s), index=0
           five = s32[] constant(5)
           ROOT go = pred[] compare(i, five), direction=LT }
    ENTRY e { x = f32[4] parameter(0)
           zero = s32[] constant(0)
           first = token[] after-all()
           t = (s32[], token[]) tuple(zero, first)
           loop = (s32[], token[]) while(t), condition=condition, body=body
           k = token[] get-tuple-element(loop), index=1
           ROOT o = token[] outfeed(x, k), outfeed_shape=f32[4] })";
  SimplifyControlFlow pass;
  const auto module = RunPass(kText, pass);
  EXPECT_EQ(module->entry()->root()->operand(1)->opcode(), Opcode::kGetTupleElement);
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

constexpr const char* kInvariants = R"(HloModule m
    condition { p = (s32[], f32[4,4], f32[4,4], f32[4]) parameter(0)
                i = s32[] get-tuple-element(p), index=0
                n = s32[] constant(3)
                ROOT c = pred[] compare(i, n), direction=LT }
    body { p = (s32[], f32[4,4], f32[4,4], f32[4]) parameter(0)
           i = s32[] get-tuple-element(p), index=0
           x = f32[4,4] get-tuple-element(p), index=1
           w = f32[4,4] get-tuple-element(p), index=2
           b = f32[4] get-tuple-element(p), index=3
           one = s32[] constant(1)
           j = s32[] add(i, one)
           t = f32[4,4] tanh(w)
           d = f32[4,4] dot(t, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
           bb = f32[4,4] broadcast(b), dimensions={1}
           y = f32[4,4] add(x, d)
           z = f32[4,4] multiply(y, bb)
           ROOT r = (s32[], f32[4,4], f32[4,4], f32[4]) tuple(j, z, w, b) }
    ENTRY e { x = f32[4,4] parameter(0)
              w = f32[4,4] parameter(1)
              b = f32[4] parameter(2)
              zero = s32[] constant(0)
              t = (s32[], f32[4,4], f32[4,4], f32[4]) tuple(zero, x, w, b)
              l = (s32[], f32[4,4], f32[4,4], f32[4]) while(t), condition=condition, body=body
              ROOT r = f32[4,4] get-tuple-element(l), index=1 })";

// The product leaves with the tanh that leads to it; the broadcast, which fusion computes for nothing, stays.
TEST(HoistLoopInvariants, MovesTheProductAndNotTheBroadcast) {
  HoistLoopInvariants pass;
  RunAndCompare(kInvariants, pass);
  const auto module = RunPass(kInvariants, pass);
  const auto in_entry = [&](Opcode opcode) {
    int64_t count = 0;
    for (const auto& instruction : module->entry()->instructions()) count += instruction->Is(opcode) ? 1 : 0;
    return count;
  };
  EXPECT_EQ(in_entry(Opcode::kDot), 1);
  EXPECT_EQ(in_entry(Opcode::kTanh), 1);
  EXPECT_EQ(in_entry(Opcode::kBroadcast), 0);
}

TEST(HoistLoopInvariants, MovesAScaledMatrixThatProductsRead) {
  const auto text = [](const char* use) {
    return fmt::format(R"(HloModule m
      condition {{ p = (s32[], f32[4], f32[8,4]) parameter(0)
                   i = s32[] get-tuple-element(p), index=0
                   n = s32[] constant(5)
                   ROOT b = pred[] compare(i, n), direction=LT }}
      add {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }}
      body {{ p = (s32[], f32[4], f32[8,4]) parameter(0)
              i = s32[] get-tuple-element(p), index=0
              v = f32[4] get-tuple-element(p), index=1
              x = f32[8,4] get-tuple-element(p), index=2
              c = f32[] constant(0.125)
              cs = f32[8,4] broadcast(c), dimensions={{}}
              s = f32[8,4] multiply(x, cs)
              d = f32[8] dot(x, v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
              {}
              one = s32[] constant(1)
              j = s32[] add(i, one)
              ROOT t = (s32[], f32[4], f32[8,4]) tuple(j, w, x) }}
      ENTRY e {{ v = f32[4] parameter(0)
                 x = f32[8,4] parameter(1)
                 z = s32[] constant(0)
                 t = (s32[], f32[4], f32[8,4]) tuple(z, v, x)
                 l = (s32[], f32[4], f32[8,4]) while(t), condition=condition, body=body
                 ROOT r = f32[4] get-tuple-element(l), index=1 }})",
                       use);
  };
  const auto hoisted = [&](const char* use) {
    HoistLoopInvariants pass;
    RunAndCompare(text(use), pass);
    const auto module = RunPass(text(use), pass);
    const auto& instructions = module->entry()->instructions();
    return std::count_if(instructions.begin(), instructions.end(),
                         [](const auto& instruction) { return instruction->Is(Opcode::kMultiply); });
  };
  EXPECT_EQ(hoisted(R"(t.s = f32[4,8] transpose(s), dimensions={1,0}
              w = f32[4] dot(t.s, d), lhs_contracting_dims={1}, rhs_contracting_dims={0})"),
            1);
  EXPECT_EQ(hoisted(R"(ds = f32[8,4] broadcast(d), dimensions={0}
              y = f32[8,4] multiply(s, ds)
              o = f32[] constant(0)
              w = f32[4] reduce(y, o), dimensions={0}, to_apply=add)"),
            0);
}

// Weights in halves: widened once, unless what each trip would read is then more than the second cache holds.
TEST(HoistLoopInvariants, WidensSmallMatricesThatProductsRead) {
  const auto text = [](int64_t side) {
    return fmt::format(R"(HloModule m
      condition {{ p = (s32[], f32[4,{0}], f16[{0},{0}]) parameter(0)
                   i = s32[] get-tuple-element(p), index=0
                   n = s32[] constant(2)
                   ROOT b = pred[] compare(i, n), direction=LT }}
      body {{ p = (s32[], f32[4,{0}], f16[{0},{0}]) parameter(0)
              i = s32[] get-tuple-element(p), index=0
              v = f32[4,{0}] get-tuple-element(p), index=1
              x = f16[{0},{0}] get-tuple-element(p), index=2
              c = f32[{0},{0}] convert(x)
              d = f32[4,{0}] dot(v, c), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
              w = f32[4,{0}] tanh(d)
              one = s32[] constant(1)
              j = s32[] add(i, one)
              ROOT t = (s32[], f32[4,{0}], f16[{0},{0}]) tuple(j, w, x) }}
      ENTRY e {{ v = f32[4,{0}] parameter(0)
                 x = f16[{0},{0}] parameter(1)
                 z = s32[] constant(0)
                 t = (s32[], f32[4,{0}], f16[{0},{0}]) tuple(z, v, x)
                 l = (s32[], f32[4,{0}], f16[{0},{0}]) while(t), condition=condition, body=body
                 ROOT r = f32[4,{0}] get-tuple-element(l), index=1 }})",
                       side);
  };
  const auto hoisted = [&](int64_t side) {
    HoistLoopInvariants pass;
    const auto module = RunPass(text(side), pass);
    const auto& instructions = module->entry()->instructions();
    return std::count_if(instructions.begin(), instructions.end(),
                         [](const auto& instruction) { return instruction->Is(Opcode::kConvert); });
  };
  HoistLoopInvariants pass;
  RunAndCompare(text(64), pass);
  EXPECT_EQ(hoisted(512), 1);
  EXPECT_EQ(hoisted(513), 0);
}

TEST(TripBound, IsTheCounterOfAConjunction) {
  const auto module = Parse(R"(HloModule m
    condition { p = (s32[], f32[]) parameter(0)
                i = s32[] get-tuple-element(p), index=0
                x = f32[] get-tuple-element(p), index=1
                n = s32[] constant(100)
                e = f32[] constant(1e-6)
                a = pred[] compare(x, e), direction=GT
                b = pred[] compare(i, n), direction=LT
                ROOT c = pred[] and(a, b) }
    body { p = (s32[], f32[]) parameter(0)
           i = s32[] get-tuple-element(p), index=0
           x = f32[] get-tuple-element(p), index=1
           one = s32[] constant(1)
           j = s32[] add(i, one)
           y = f32[] multiply(x, x)
           ROOT t = (s32[], f32[]) tuple(j, y) }
    ENTRY e { x = f32[] parameter(0)
              z = s32[] constant(0)
              t = (s32[], f32[]) tuple(z, x)
              ROOT w = (s32[], f32[]) while(t), condition=condition, body=body })");
  EXPECT_EQ(TripCountOf(*module->entry()->root()), std::nullopt);
  EXPECT_EQ(TripBoundOf(*module->entry()->root()), 100);
}

// A loop with effects is replaced by the smaller one, not left beside it with a body that no longer fits.
TEST(ControlFlow, ALoopWithCollectivesLosesACarryThatNothingNeeds) {
  const std::string text = R"(HloModule m, num_partitions=2
    add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
    condition { p = (s32[], f32[], f32[2]) parameter(0)
                i = s32[] get-tuple-element(p), index=0
                n = s32[] constant(5)
                ROOT c = pred[] compare(i, n), direction=LT }
    body { p = (s32[], f32[], f32[2]) parameter(0)
           i = s32[] get-tuple-element(p), index=0
           x = f32[] get-tuple-element(p), index=1
           u = f32[2] get-tuple-element(p), index=2
           d = s32[] constant(1)
           j = s32[] add(i, d)
           y = f32[] all-reduce(x), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add
           v = f32[2] negate(u)
           ROOT t = (s32[], f32[], f32[2]) tuple(j, y, v) }
    ENTRY e { x = f32[] parameter(0)
              u = f32[2] parameter(1)
              z = s32[] constant(0)
              t = (s32[], f32[], f32[2]) tuple(z, x, u)
              w = (s32[], f32[], f32[2]) while(t), condition=condition, body=body
              ROOT r = f32[] get-tuple-element(w), index=1 })";
  SimplifyControlFlow pass;
  const auto module = RunPass(text, pass);
  EXPECT_EQ(Count(*module, Opcode::kWhile), 1);
  EXPECT_EQ(Count(*module, Opcode::kNegate), 0);
}

}  // namespace
}  // namespace hlorun::passes
