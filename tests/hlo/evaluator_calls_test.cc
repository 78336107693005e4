// Custom-calls, asynchronous forms, fusions, and what the evaluator refuses.
#include <gmock/gmock.h>

#include "hlo/error.h"
#include "hlo/evaluator/custom_calls.h"
#include "tests/hlo/evaluation_text.h"

namespace hlorun::hlo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(EvaluatorCallsTest, RegisteredTargetsAreEvaluated) {
  RegisterCustomCallEvaluator("hlorun.test.twice", [](OpCall& call) {
    Literal result(call.shape);
    for (int64_t i = 0; i < result.ElementCount(); ++i) result.SetDouble(i, 2 * call.operand(0).GetDouble(i));
    return result;
  });
  EXPECT_THAT(Numbers(EvaluateEntry("x = f32[2] parameter(0)\n"
                                    " ROOT r = f32[2] custom-call(x), custom_call_target=\"hlorun.test.twice\"",
                                    {Floats({1, 2})})),
              ElementsAre(2, 4));
}

TEST(EvaluatorCallsTest, ShardingIsTheIdentity) {
  EXPECT_THAT(Numbers(EvaluateEntry("x = f32[2] parameter(0)\n ROOT r = f32[2] custom-call(x), "
                                    "custom_call_target=\"Sharding\", sharding={replicated}",
                                    {Floats({1, 2})})),
              ElementsAre(1, 2));
}

TEST(EvaluatorCallsTest, PlacesAndPinsAreTheIdentity) {
  for (const char* target : {"annotate_device_placement", "MoveToHost", "MoveToDevice", "PinToDevice"}) {
    EXPECT_THAT(Numbers(EvaluateEntry(fmt::format("x = f32[2] parameter(0)\n ROOT r = f32[2]{{0:S(5)}} custom-call(x), "
                                                  "custom_call_target=\"{}\", custom_call_has_side_effect=true, "
                                                  "frontend_attributes={{_xla_buffer_placement=\"pinned_host\"}}",
                                                  target),
                                      {Floats({1, 2})})),
                ElementsAre(1, 2));
  }
}

constexpr const char* kPartialReduce = R"(HloModule m
greater { a = f32[] parameter(0)
  b = f32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT c = pred[] compare(a, b), direction=GT }
ENTRY e { x = f32[2,4] parameter(0)
  i = s32[2,4] iota(), iota_dimension=1
  v = f32[] constant(-7)
  j = s32[] constant(-1)
  ROOT r = (f32[2,%], s32[2,%]) custom-call(x, i, v, j), custom_call_target="PartialReduce",
    called_computations={greater}, backend_config={"log2_reduction": 1, "reduction_dim": 1, "top_k": 2} })";

TEST(EvaluatorCallsTest, ApproximateTopKIsExactAndPadded) {
  const auto with_length = [](char length) {
    std::string text = kPartialReduce;
    std::replace(text.begin(), text.end(), '%', length);
    return EvaluateText(text, {Values(ElementType::kF32, {2, 4}, {3, 9, 1, 9, 5, 6, 7, 8})});
  };
  EXPECT_THAT(Numbers(with_length('2').elements()[0]), ElementsAre(9, 9, 8, 7));
  EXPECT_THAT(Numbers(with_length('2').elements()[1]), ElementsAre(1, 3, 3, 2));
  EXPECT_THAT(Numbers(with_length('5').elements()[0]), ElementsAre(9, 9, 3, 1, -7, 8, 7, 6, 5, -7));
}

TEST(EvaluatorCallsTest, AnUnknownTargetIsNamed) {
  try {
    EvaluateEntry("x = f32[2] parameter(0)\n ROOT r = f32[2] custom-call(x), custom_call_target=\"foo\"",
                  {Floats({1, 2})});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnimplemented);
    EXPECT_THAT(error.message(), HasSubstr("\"foo\""));
  }
}

TEST(EvaluatorCallsTest, AsyncPairsGiveWhatTheirComputationGives) {
  const std::string text = R"(HloModule m
wrapped { x = f32[2] parameter(0)
  ROOT r = f32[2] negate(x) }
ENTRY e { x = f32[2] parameter(0)
  s = ((f32[2]), f32[2], s32[]) async-start(x), calls=wrapped
  u = ((f32[2]), f32[2], s32[]) async-update(s)
  ROOT d = f32[2] async-done(u) })";
  EXPECT_THAT(Numbers(EvaluateText(text, {Floats({1, -2})})), ElementsAre(-1, 2));
}

TEST(EvaluatorCallsTest, FusionsAreCalls) {
  const std::string text = R"(HloModule m
fused { a = f32[2] parameter(0)
  b = f32[2] parameter(1)
  c = f32[2] multiply(a, b)
  ROOT d = f32[2] add(c, b) }
ENTRY e { x = f32[2] parameter(0)
  y = f32[2] parameter(1)
  ROOT r = f32[2] fusion(x, y), kind=kLoop, calls=fused })";
  EXPECT_THAT(Numbers(EvaluateText(text, {Floats({2, 3}), Floats({5, 7})})), ElementsAre(15, 28));
}

TEST(EvaluatorCallsTest, BitcastFollowsLayouts) {
  // Column-major [2,3] read as row-major [3,2] is its transpose.
  EXPECT_THAT(Numbers(EvaluateEntry("x = f32[2,3]{0,1} parameter(0)\n ROOT r = f32[3,2]{1,0} bitcast(x)",
                                    {Values(ElementType::kF32, {2, 3}, {1, 2, 3, 4, 5, 6})})),
              ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(EvaluatorCallsTest, ArgumentsMustFit) {
  const std::string text = "HloModule m\nENTRY e {\n ROOT x = f32[<=4] parameter(0)\n}\n";
  EXPECT_EQ(EvaluateText(text, {Floats({1, 2})}).ElementCount(), 2);
  EXPECT_THROW(EvaluateText(text, {Floats({1, 2, 3, 4, 5})}), Error);
  EXPECT_THROW(EvaluateText(text, {Ints({1, 2})}), Error);
  EXPECT_THROW(EvaluateText(text, {}), Error);
}

TEST(EvaluatorCallsTest, ReducersThatAreNotLanesRunOneByOne) {
  const std::string text = R"(HloModule m
yes { a = f32[] parameter(0)
  ROOT b = f32[] negate(a) }
no { ROOT a = f32[] parameter(0) }
odd { a = f32[] parameter(0)
  z = f32[] constant(0)
  p = pred[] compare(a, z), direction=LT
  ROOT r = f32[] conditional(p, a, a), true_computation=yes, false_computation=no }
ENTRY e { x = f32[3] parameter(0)
  ROOT r = f32[3] map(x), dimensions={0}, to_apply=odd })";
  EXPECT_THAT(Numbers(EvaluateText(text, {Floats({-1, 2, -3})})), ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace hlorun::hlo
