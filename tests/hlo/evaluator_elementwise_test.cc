// Elementwise ops where types and edge cases differ. Expected values are XLA:CPU's.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/hlo/evaluation_text.h"

namespace hlorun::hlo {
namespace {

using testing::ElementsAre;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(EvaluatorElementwiseTest, IntegerDivisionAndRemainder) {
  const Literal a = Ints({-2147483648.0, 5, -5, 7});
  const Literal b = Ints({-1, 0, 0, -3});
  EXPECT_THAT(Numbers(EvaluateEntry("a = s32[4] parameter(0)\n b = s32[4] parameter(1)\n ROOT r = s32[4] divide(a, b)",
                                    {a, b})),
              ElementsAre(-2147483648.0, -1, -1, -2));
  EXPECT_THAT(Numbers(EvaluateEntry(
                  "a = s32[4] parameter(0)\n b = s32[4] parameter(1)\n ROOT r = s32[4] remainder(a, b)", {a, b})),
              ElementsAre(0, 5, -5, 1));
}

TEST(EvaluatorElementwiseTest, ShiftsPastTheWidth) {
  const Literal a = Ints({-8, 5, -7, 1});
  const Literal b = Ints({1, 32, 32, -1});
  auto run = [&](const std::string& op) {
    return Numbers(
        EvaluateEntry("a = s32[4] parameter(0)\n b = s32[4] parameter(1)\n ROOT r = s32[4] " + op + "(a, b)", {a, b}));
  };
  EXPECT_THAT(run("shift-left"), ElementsAre(-16, 0, 0, 0));
  EXPECT_THAT(run("shift-right-arithmetic"), ElementsAre(-4, 0, -1, 0));
  EXPECT_THAT(run("shift-right-logical"), ElementsAre(2147483644.0, 0, 0, 0));
}

TEST(EvaluatorElementwiseTest, FloatToIntegerSaturates) {
  const Literal x = Floats({kNan, kInf, -kInf, -1.5, 300, -300});
  EXPECT_THAT(Numbers(EvaluateEntry("x = f32[6] parameter(0)\n ROOT r = s32[6] convert(x)", {x})),
              ElementsAre(0, 2147483647.0, -2147483648.0, -1, 300, -300));
  EXPECT_THAT(Numbers(EvaluateEntry("x = f32[6] parameter(0)\n ROOT r = u8[6] convert(x)", {x})),
              ElementsAre(0, 255, 0, 0, 255, 0));
  EXPECT_THAT(Numbers(EvaluateEntry("x = f32[6] parameter(0)\n ROOT r = s4[6] convert(x)", {x})),
              ElementsAre(0, 7, -8, -1, 7, -8));
}

TEST(EvaluatorElementwiseTest, MaximumPropagatesNanAndPrefersPlusZero) {
  const Literal a = Floats({0.0, -0.0, kNan, 1});
  const Literal b = Floats({-0.0, 0.0, 1, kNan});
  const Literal r =
      EvaluateEntry("a = f32[4] parameter(0)\n b = f32[4] parameter(1)\n ROOT r = f32[4] maximum(a, b)", {a, b});
  EXPECT_FALSE(std::signbit(r.GetDouble(0)));
  EXPECT_FALSE(std::signbit(r.GetDouble(1)));
  EXPECT_TRUE(std::isnan(r.GetDouble(2)));
  EXPECT_TRUE(std::isnan(r.GetDouble(3)));
}

TEST(EvaluatorElementwiseTest, DenormalsAreFlushedUnlessAskedNotTo) {
  const std::string text = "HloModule m\nENTRY e {\n x = f32[1] parameter(0)\n ROOT r = f32[1] add(x, x)\n}\n";
  EXPECT_EQ(EvaluateText(text, {Floats({1e-40})}).GetDouble(0), 0);
  EvaluatorOptions keep;
  keep.flush_denormals = false;
  EXPECT_GT(EvaluateText(text, {Floats({1e-40})}, keep).GetDouble(0), 1e-40);
}

TEST(EvaluatorElementwiseTest, Bf16RoundsAtEachOp) {
  const Literal x = Values(ElementType::kBF16, {1}, {1});
  const Literal tiny = Values(ElementType::kBF16, {1}, {0.00390625});  // half a unit in the last place of 1
  EXPECT_THAT(Numbers(EvaluateEntry("x = bf16[1] parameter(0)\n t = bf16[1] parameter(1)\n s = bf16[1] add(x, t)\n"
                                    " ROOT r = bf16[1] add(s, t)",
                                    {x, tiny})),
              ElementsAre(1));
}

TEST(EvaluatorElementwiseTest, TotalOrderSeparatesZerosAndOrdersNan) {
  const Literal a = Floats({-0.0, kNan, 1});
  const Literal b = Floats({0.0, kInf, kNan});
  EXPECT_THAT(Numbers(EvaluateEntry("a = f32[3] parameter(0)\n b = f32[3] parameter(1)\n"
                                    " ROOT r = pred[3] compare(a, b), direction=LT, type=TOTALORDER",
                                    {a, b})),
              ElementsAre(1, 0, 1));
}

TEST(EvaluatorElementwiseTest, ReducePrecisionToBf16Range) {
  EXPECT_THAT(Numbers(EvaluateEntry("x = f32[3] parameter(0)\n"
                                    " ROOT r = f32[3] reduce-precision(x), exponent_bits=5, mantissa_bits=10",
                                    {Floats({65520, 1e-8, 1.0009765625 + 0.00048828125})})),
              ElementsAre(kInf, 0, 1.001953125));
}

TEST(EvaluatorElementwiseTest, BitcastConvertBetweenWidths) {
  EXPECT_THAT(
      Numbers(EvaluateEntry("x = s32[1] parameter(0)\n ROOT r = u8[1,4] bitcast-convert(x)", {Ints({0x04030201})})),
      ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Numbers(EvaluateEntry("x = s8[1] parameter(0)\n ROOT r = s4[1,2] bitcast-convert(x)",
                                    {Values(ElementType::kS8, {1}, {0x1F})})),
              ElementsAre(-1, 1));
}

TEST(EvaluatorElementwiseTest, BitcastConvertOfNarrowIntegersKeepsTheirBitsOnly) {
  EXPECT_THAT(Numbers(EvaluateEntry("x = s4[2] parameter(0)\n ROOT r = u4[2] bitcast-convert(x)",
                                    {Values(ElementType::kS4, {2}, {-1, 7})})),
              ElementsAre(15, 7));
}

TEST(EvaluatorElementwiseTest, StepLimitStops) {
  EvaluatorOptions options;
  options.step_limit = 1000;
  const std::string text = R"(HloModule m
body { s = s32[] parameter(0)
  one = s32[] constant(1)
  ROOT n = s32[] add(s, one) }
cond { s = s32[] parameter(0)
  ROOT t = pred[] constant(true) }
ENTRY e { s = s32[] parameter(0)
  ROOT w = s32[] while(s), condition=cond, body=body })";
  EXPECT_THROW(EvaluateText(text, {Literal::Scalar(ElementType::kS32, 0)}, options), Error);
}

}  // namespace
}  // namespace hlorun::hlo
