#include "passes/spmd/uniform_predicates.h"

#include <gtest/gtest.h>

#include "hlo/text/parser.h"
#include "hlo/verifier.h"

namespace hlorun::passes::spmd {
namespace {

std::string Loop(const std::string& condition) {
  return R"(
HloModule m, num_partitions=2
body {
  c = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  x = f32[] get-tuple-element(c), index=1
  one = s32[] constant(1)
  half = f32[] constant(0.5)
  next = s32[] add(i, one)
  y = f32[] multiply(x, half)
  ROOT r = (s32[], f32[]) tuple(next, y)
}
condition {
  c = (s32[], f32[]) parameter(0)
)" + condition +
         R"(
}
ENTRY main {
  x = f32[] parameter(0)
  zero = s32[] constant(0)
  c = (s32[], f32[]) tuple(zero, x)
  ROOT l = (s32[], f32[]) while(c), condition=condition, body=body
}
)";
}

TEST(UniformPredicates, TheFirstDeviceEndsALoopOfFloats) {
  const auto module = hlo::ParseModule(Loop(R"(
  x = f32[] get-tuple-element(c), index=1
  bound = f32[] constant(0.01)
  ROOT more = pred[] compare(x, bound), direction=GT)"));
  EXPECT_EQ(MakePredicatesUniform(*module), 1);
  hlo::VerifyModule(*module);
  EXPECT_TRUE(module->entry()->root()->while_condition()->root()->Is(hlo::Opcode::kCollectiveBroadcast));
  EXPECT_EQ(MakePredicatesUniform(*module), 0) << "once is enough";
}

TEST(UniformPredicates, LoopsThatCountStay) {
  const auto module = hlo::ParseModule(Loop(R"(
  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(7)
  ROOT more = pred[] compare(i, n), direction=LT)"));
  EXPECT_EQ(MakePredicatesUniform(*module), 0);
}

TEST(UniformPredicates, ConditionalsOnFloatsAreDecidedOnce) {
  const auto module = hlo::ParseModule(R"(
HloModule m, num_partitions=2
a { ROOT x = f32[] parameter(0) }
b { x = f32[] parameter(0) ROOT y = f32[] negate(x) }
ENTRY main {
  x = f32[] parameter(0)
  p = pred[] parameter(1)
  zero = f32[] constant(0)
  s = f32[] sine(x)
  less = pred[] compare(s, zero), direction=LT
  one = f32[] conditional(less, x, x), true_computation=a, false_computation=b
  ROOT two = f32[] conditional(p, one, one), true_computation=a, false_computation=b
}
)");
  EXPECT_EQ(MakePredicatesUniform(*module), 1);
  hlo::VerifyModule(*module);
  EXPECT_TRUE(module->entry()->root()->operand(0)->Is(hlo::Opcode::kParameter)) << "an input is the same everywhere";
}

}  // namespace
}  // namespace hlorun::passes::spmd
