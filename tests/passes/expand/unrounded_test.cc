// Which roundings to bf16 are skipped, and which are not.
#include "passes/expand/unrounded.h"

#include <gtest/gtest.h>

#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

using hlo::Opcode;

// Half a unit in the last place of a bf16, of values below 16.
constexpr Tolerance kOneRounding{false, 4e-3};

int64_t Bf16Ops(const hlo::Module& module, Opcode opcode) {
  int64_t count = 0;
  for (const auto& op : module.entry()->instructions())
    count += op->Is(opcode) && op->shape().element_type() == hlo::ElementType::kBF16 ? 1 : 0;
  return count;
}

TEST(SkipRounding, WhereAllUsersConvert) {
  constexpr const char* kText = R"(
    x = bf16[4,8] parameter(0)
    y = bf16[4,8] parameter(1)
    d = bf16[4,8] subtract(x, y)
    q = bf16[4,8] multiply(d, d)
    a = f32[4,8] convert(q)
    b = f32[4,8] convert(q)
    ROOT s = f32[4,8] add(a, b))";
  SkipRounding pass;
  RunAndCompare(kText, pass, kOneRounding);
  const auto module = RunPass(kText, pass);
  EXPECT_EQ(Bf16Ops(*module, Opcode::kMultiply), 0);
  // One op deep: what the product multiplies is still of bf16.
  EXPECT_EQ(Bf16Ops(*module, Opcode::kSubtract), 1);
}

TEST(SkipRounding, AtTheRoot) {
  constexpr const char* kText = R"(
    x = bf16[8] parameter(0)
    e = bf16[8] exponential(x)
    ROOT r = f32[8] convert(e))";
  SkipRounding pass;
  RunAndCompare(kText, pass, kOneRounding);
  EXPECT_EQ(Bf16Ops(*RunPass(kText, pass), Opcode::kExp), 0);
}

TEST(SkipRounding, NotWhereBf16IsWanted) {
  SkipRounding pass;
  for (const char* text : {
           R"(x = bf16[8] parameter(0)
              q = bf16[8] multiply(x, x)
              c = f32[8] convert(q)
              ROOT r = (f32[8], bf16[8]) tuple(c, q))",
           R"(x = bf16[8] parameter(0)
              q = bf16[8] multiply(x, x)
              c = s32[8] convert(q)
              ROOT r = s32[8] add(c, c))",
           R"(x = bf16[8] parameter(0)
              y = f32[8] parameter(1)
              n = bf16[8] convert(y)
              c = f32[8] convert(n)
              ROOT r = f32[8] add(c, y))",
           R"(x = bf16[8] parameter(0)
              ROOT q = bf16[8] multiply(x, x))",
           R"(x = bf16[] parameter(0)
              q = bf16[] multiply(x, x)
              ROOT c = f32[] convert(q))",
       }) {
    RunAndCompare(text, pass);
    EXPECT_EQ(Count(*RunPass(text, pass), Opcode::kConvert), Count(*Parse(text), Opcode::kConvert)) << text;
    EXPECT_EQ(Bf16Ops(*RunPass(text, pass), Opcode::kMultiply), Bf16Ops(*Parse(text), Opcode::kMultiply)) << text;
  }
}

}  // namespace
}  // namespace hlorun::passes
