// Direct convolutions that read the input where it lies.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "backends/opencl/kernels/convolution.h"
#include "backends/opencl/kernels/convolution_plan.h"
#include "hlo/module.h"
#include "hlo/text/parser.h"
#include "tests/backends/convolution_case.h"

namespace hlorun::opencl {
namespace {

using Case = ConvolutionCase;

std::optional<ConvolutionPlan> PlanOf(const Case& c, const DeviceSpec& spec) {
  const auto module = hlo::ParseModule(ConvolutionText(c, false));
  const std::optional<ConvolutionShape> shape = ConvolutionShapeOf(*module->entry()->root());
  return shape ? std::optional(PlanConvolution(*shape, spec)) : std::nullopt;
}

struct PlaceCase {
  Case convolution;
  bool in_place;
  size_t edges;  // taps that some tile has not all of
};

const std::vector<PlaceCase>& Cases() {
  static const std::vector<PlaceCase> kCases = {
      // The first pixel of a row alone, in each of its tiles' turn; both ends; none.
      {{"f32[1,28,28,48]", "f32[3,3,48,64]", "f32[1,14,14,64]", "size=3x3 stride=2x2 pad=1_1x1_1"}, true, 1},
      {{"f32[2,27,55,48]", "f32[3,3,48,35]", "f32[2,14,28,35]", "size=3x3 stride=2x2 pad=1_1x1_1"}, true, 2},
      {{"f32[2,26,56,20]", "f32[3,3,20,35]", "f32[2,13,28,35]", "size=3x3 stride=2x2 pad=0_1x0_1"}, true, 1},
      {{"f32[1,12,31,5]", "f32[3,3,5,40]", "f32[1,12,31,40]", "size=3x3 pad=1_1x1_1"}, true, 2},
      {{"f32[2,13,14,300]", "f32[3,3,300,40]", "f32[2,13,14,40]", "size=3x3 pad=1_1x1_1"}, true, 2},
      {{"f32[1,9,14,16]", "f32[3,3,16,40]", "f32[1,7,12,40]", "size=3x3"}, true, 0},
      // Windows of an even width, wider than the stride and narrower, larger in one dimension.
      {{"f32[2,28,28,24]", "f32[4,4,24,48]", "f32[2,14,14,48]", "size=4x4 stride=2x2 pad=1_1x1_1"}, true, 2},
      {{"f32[1,20,28,24]", "f32[2,2,24,48]", "f32[1,7,10,48]", "size=2x2 stride=3x3 pad=1_0x1_0"}, true, 1},
      {{"f32[1,20,14,24]", "f32[7,3,24,48]", "f32[1,20,14,48]", "size=7x3 pad=3_3x1_1"}, true, 2},
      // Tiles of several rows, none of which leaves the input.
      {{"f32[1,2,3,16]", "f32[1,3,16,32]", "f32[1,2,3,32]", "size=1x3 pad=0_0x1_1"}, true, 2},
      {{"f32[3,6,6,16]", "f32[1,3,16,32]", "f32[3,6,6,32]", "size=1x3 pad=0_0x1_1"}, true, 2},
      {{"f32[2,8,6,20]", "f32[3,3,20,40]", "f32[2,6,6,40]", "size=3x3 pad=0_0x1_1"}, true, 2},
      // A tap without any column, one of which two tiles lack columns.
      {{"f32[1,5,1,16]", "f32[1,3,16,32]", "f32[1,5,1,32]", "size=1x3 pad=0_0x1_1"}, true, 2},
      {{"f32[1,5,24,16]", "f32[1,1,16,32]", "f32[1,5,26,32]", "size=1x1 pad=0_0x1_1"}, false, 2},
      // One element of the window, some of the input skipped.
      {{"f32[2,27,28,40]", "f32[1,1,40,70]", "f32[2,14,14,70]", "size=1x1 stride=2x2"}, true, 0},
      {{"f32[2,13,28,40]", "f32[1,1,40,70]", "f32[2,13,14,70]", "size=1x1 stride=1x2 pad=0_0x0_-1"}, true, 0},
      {{"f32[1,21,21,16]", "f32[3,3,16,40]", "f32[1,17,14,40]", "size=3x3 pad=-1_-1x-4_-1"}, true, 0},
      // A signal.
      {{"f32[2,1500,24]", "f32[3,24,40]", "f32[2,750,40]", "size=3 stride=2 pad=1_1", "b0f_0io->b0f"}, true, 1},
      {{"f32[1,14,14,64]", "f32[3,3,64,40]", "f32[1,7,7,40]", "size=3x3 stride=2x2 pad=1_1x1_1"}, true, 1},
      // Other types; bf16 where the CPU has words of it.
      {{"bf16[1,28,28,48]", "bf16[3,3,48,64]", "bf16[1,14,14,64]", "size=3x3 stride=2x2 pad=1_1x1_1"}, true, 1},
      {{"f64[1,9,14,6]", "f64[3,3,6,20]", "f64[1,9,14,20]", "size=3x3 pad=1_1x1_1"}, true, 2},
      {{"s32[1,9,14,6]", "s32[3,3,6,20]", "s32[1,9,14,20]", "size=3x3 pad=1_1x1_1"}, true, 2},
      // Copied: two taps at an end, tiles of several rows with rows outside, holes, pairs that overlap.
      {{"f32[1,28,28,16]", "f32[5,5,16,40]", "f32[1,14,14,40]", "size=5x5 stride=2x2 pad=2_2x2_2"}, false, 2},
      {{"f32[1,6,6,64]", "f32[3,3,64,40]", "f32[1,3,3,40]", "size=3x3 stride=2x2 pad=1_1x1_1"}, false, 1},
      {{"f32[1,14,14,16]", "f32[3,3,16,40]", "f32[1,14,14,40]", "size=3x3 pad=2_2x2_2 rhs_dilate=2x2"}, false, 2},
      {{"f32[1,7,7,16]", "f32[3,3,16,40]", "f32[1,14,14,40]", "size=3x3 pad=2_1x2_1 lhs_dilate=2x2"}, false, 2},
  };
  return kCases;
}

// A CPU of 32 registers with AVX512: tiles are 14 pixels by two vectors of 16 lanes, whatever this machine has.
DeviceSpec Wide() {
  DeviceSpec spec = Runner().spec();
  spec.vector_bytes = 64;
  spec.spare_registers = 0;
  return spec;
}

TEST(RowsInPlace, WhereTheyLieAsACopyWould) {
  for (const PlaceCase& c : Cases()) {
    SCOPED_TRACE(c.convolution.input + " {" + c.convolution.window + "}");
    const std::optional<ConvolutionPlan> plan = PlanOf(c.convolution, Wide());
    ASSERT_TRUE(plan.has_value());
    const bool is_converted = c.convolution.input.starts_with("bf16") && !plan->words;
    EXPECT_EQ(plan->reads_in_place, c.in_place && !is_converted);
    EXPECT_EQ(plan->BufferBytes() == 0, plan->reads_in_place);
    EXPECT_EQ(EdgeTaps(*plan).size(), c.edges);
  }
}

TEST(RowsInPlace, EveryForm) {
  DeviceSpec narrow = Wide();
  narrow.vector_bytes = 16;
  narrow.l2_bytes = 16 << 10;  // several blocks of rows
  for (size_t i = 0; i < Cases().size(); ++i) {
    ExpectConvolution(Cases()[i].convolution, i % 2 == 0, Wide());
    ExpectConvolution(Cases()[i].convolution, i % 2 != 0, narrow);
  }
}

// What lies outside has no product: zero times an infinite weight would be no number.
TEST(RowsInPlace, PaddingMeetsNoWeight) {
  const Case c = {"f32[1,28,28,48]", "f32[3,3,48,64]", "f32[1,14,14,64]", "size=3x3 stride=2x2 pad=1_1x1_1"};
  ASSERT_TRUE(PlanOf(c, Wide())->reads_in_place);
  const auto module = hlo::ParseModule(ConvolutionText(c, false));
  const hlo::Instruction& root = *module->entry()->root();
  std::vector<hlo::Literal> operands = RandomOperands(root);
  for (int64_t i = 0; i < operands[0].shape().ElementCount(); ++i) operands[0].SetDouble(i, 1);
  operands[1].SetDouble(0, std::numeric_limits<double>::infinity());  // the first tap's first channel and feature
  const hlo::Literal y = OnDevice(root, operands, Wide(), {});
  for (int64_t i = 0; i < y.shape().ElementCount(); ++i) {
    const int64_t pixel = i / 64;
    EXPECT_EQ(std::isinf(y.GetDouble(i)), i % 64 == 0 && pixel / 14 > 0 && pixel % 14 > 0) << i;
    EXPECT_FALSE(std::isnan(y.GetDouble(i))) << i;
  }
}

}  // namespace
}  // namespace hlorun::opencl
