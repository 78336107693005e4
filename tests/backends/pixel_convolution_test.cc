// Convolutions whose vectors are pixels of a row, on the device against sums in double on the host.
#include "backends/opencl/kernels/pixel_convolution_plan.h"

#include <gtest/gtest.h>

#include "hlo/text/parser.h"
#include "tests/backends/convolution_case.h"

namespace hlorun::opencl {
namespace {

using Case = ConvolutionCase;

std::optional<PixelConvolutionPlan> PlanOf(const Case& c, const DeviceSpec& spec) {
  const auto module = hlo::ParseModule(ConvolutionText(c, false));
  const std::optional<ConvolutionShape> shape = ConvolutionShapeOf(*module->entry()->root());
  return shape ? PlanPixelConvolution(*shape, spec) : std::nullopt;
}

const std::vector<Case>& Cases() {
  static const std::vector<Case> kCases = {
      {"f32[2,19,150,1]", "f32[3,3,1,1]", "f32[2,19,150,1]", "size=3x3 pad=1_1x1_1"},
      {"f32[1,5,128,1]", "f32[1,7,1,1]", "f32[1,5,128,1]", "size=1x7 pad=0_0x3_3"},
      {"f32[1,40,33,1]", "f32[7,1,1,1]", "f32[1,34,33,1]", "size=7x1"},
      {"f32[2,9,70,1]", "f32[3,3,1,2]", "f32[2,9,70,2]", "size=3x3 pad=1_1x1_1"},
      {"f32[1,12,37,3]", "f32[3,5,3,3]", "f32[1,12,37,3]", "size=3x5 pad=1_1x2_2"},
      {"f32[1,9,51,3]", "f32[3,3,3,8]", "f32[1,9,51,8]", "size=3x3 pad=1_1x1_1"},
      {"f32[1,7,40,16]", "f32[3,3,16,1]", "f32[1,5,38,1]", "size=3x3"},
      // Each channel by itself, and several features of each.
      {"f32[2,12,65,3]", "f32[5,5,1,3]", "f32[2,12,65,3]", "size=5x5 pad=2_2x2_2", Grouped(3)},
      {"f32[1,8,33,3]", "f32[3,3,1,6]", "f32[1,8,33,6]", "size=3x3 pad=1_1x1_1", Grouped(3)},
      {"f32[1,8,33,7]", "f32[3,3,1,7]", "f32[1,8,33,7]", "size=3x3 pad=1_1x1_1", Grouped(7)},
      {"f32[1,8,33,3]", "f32[3,3,1,12]", "f32[1,8,33,12]", "size=3x3 pad=1_1x1_1", Grouped(3)},
      {"f32[1,8,33,6]", "f32[3,3,1,24]", "f32[1,8,33,24]", "size=3x3 pad=1_1x1_1", Grouped(6)},
      // More channels than vectors of them want, where those had no tiles: a wide window, a signal.
      {"f32[1,3,90,10]", "f32[1,31,1,10]", "f32[1,3,90,10]", "size=1x31 pad=0_0x15_15", Grouped(10)},
      {"f32[2,300,1,22]", "f32[17,1,1,22]", "f32[2,300,1,22]", "size=17x1 pad=8_8x0_0", Grouped(22)},
      {"f32[1,8,33,6]", "f32[3,3,2,9]", "f32[1,8,33,9]", "size=3x3 pad=1_1x1_1", Grouped(3)},
      // Strides whose remainders the taps meet in part, all of them and several times.
      {"f32[2,17,65,1]", "f32[2,2,1,3]", "f32[2,8,32,3]", "size=2x2 stride=2x2"},
      {"f32[1,9,130,2]", "f32[3,5,2,1]", "f32[1,5,44,1]", "size=3x5 stride=2x3 pad=1_1x2_2"},
      {"f32[1,3,200,1]", "f32[1,2,1,4]", "f32[1,3,40,4]", "size=1x2 stride=1x5"},
      {"f32[1,9,67,1]", "f32[1,1,1,3]", "f32[1,5,34,3]", "size=1x1 stride=2x2"},
      {"f32[1,5,90,1]", "f32[3,3,1,2]", "f32[1,5,43,2]", "size=3x3 stride=1x2 pad=2_2x0_0 rhs_dilate=2x3"},
      // Dilation, holes in the input, padding that takes away.
      {"f32[1,12,60,2]", "f32[3,3,2,2]", "f32[1,12,60,2]", "size=3x3 pad=3_3x4_4 rhs_dilate=3x4"},
      {"f32[2,5,21,1]", "f32[4,4,1,1]", "f32[2,10,42,1]", "size=4x4 pad=2_2x2_2 lhs_dilate=2x2"},
      {"f32[1,4,30,3]", "f32[3,2,3,2]", "f32[1,12,86,2]", "size=3x2 pad=2_2x-2_1 lhs_dilate=3x3"},
      {"f32[1,10,40,1]", "f32[3,3,1,1]", "f32[1,6,34,1]", "size=3x3 pad=-1_-1x-2_-2"},
      {"f32[1,2,20,1]", "f32[3,9,1,1]", "f32[1,8,40,1]", "size=3x9 pad=4_4x14_14"},
      // One dimension: long rows, in blocks.
      {"f32[2,5000,1]", "f32[63,1,1]", "f32[2,4938,1]", "size=63", "b0f_0io->b0f"},
      {"f32[1,3000,1]", "f32[9,1,5]", "f32[1,750,5]", "size=9 stride=4 pad=3_3", "b0f_0io->b0f"},
      {"f32[3,40,2]", "f32[5,2,2]", "f32[3,40,2]", "size=5 pad=4_4 rhs_dilate=2", "b0f_0io->b0f"},
      {"f32[2,600,1,3]", "f32[7,1,3,2]", "f32[2,600,1,2]", "size=7x1 pad=3_3x0_0"},
      // Other types.
      {"bf16[1,9,70,3]", "bf16[3,3,3,2]", "bf16[1,9,70,2]", "size=3x3 pad=1_1x1_1"},
      {"f64[1,9,41,1]", "f64[3,3,1,2]", "f64[1,9,41,2]", "size=3x3 pad=1_1x1_1"},
      {"s8[1,9,70,1]", "s8[3,3,1,1]", "s32[1,9,70,1]", "size=3x3 pad=1_1x1_1"},
  };
  return kCases;
}

TEST(PixelConvolution, EqualsSumsInDouble) {
  DeviceSpec wide = Runner().spec(), narrow = Runner().spec(), small = Runner().spec();
  wide.vector_bytes = 64;
  narrow.vector_bytes = 32;
  small.l2_bytes = 8 << 10;  // blocks of a few rows and parts of them
  bool fused = false;
  for (const Case& c : Cases()) {
    EXPECT_TRUE(PlanOf(c, wide).has_value()) << c.input << " {" << c.window << "} " << c.labels;
    ExpectConvolution(c, fused, wide);
    ExpectConvolution(c, !fused, fused ? narrow : small);
    fused = !fused;
  }
}

TEST(PixelConvolution, BlocksHaveRowsAndColumns) {
  DeviceSpec spec = Runner().spec();
  spec.compute_units = 2;
  spec.l2_bytes = 1 << 20;
  const std::optional<PixelConvolutionPlan> image =
      PlanOf({"f32[1,1080,1920,1]", "f32[3,3,1,1]", "f32[1,1080,1920,1]", "size=3x3 pad=1_1x1_1"}, spec);
  ASSERT_TRUE(image.has_value());
  EXPECT_GE(image->blocks(), 8);
  EXPECT_GE(image->rows_per_block, 8);
  EXPECT_LE(image->BufferElements() * 4, spec.l2_bytes / 4);
  const std::optional<PixelConvolutionPlan> signal =
      PlanOf({"f32[1,100000,1,1]", "f32[501,1,1,1]", "f32[1,99500,1,1]", "size=501x1"}, spec);
  ASSERT_TRUE(signal.has_value());
  EXPECT_TRUE(signal->is_column);
  EXPECT_GE(signal->blocks(), 8);
}

// How sums are ordered does not follow from how many units there are.
TEST(PixelConvolution, SameBitsOfAnyUnits) {
  const Case c = {"f32[1,70,300,3]", "f32[5,5,3,2]", "f32[1,70,300,2]", "size=5x5 pad=2_2x2_2"};
  const auto module = hlo::ParseModule(ConvolutionText(c, true));
  const hlo::Instruction& root = *module->entry()->root();
  const std::vector<hlo::Literal> operands = RandomOperands(root);
  std::vector<hlo::Literal> results;
  for (const int units : {1, 6}) {
    DeviceSpec spec = Runner().spec();
    spec.compute_units = units;
    results.push_back(OnDevice(root, operands, spec, {}));
  }
  EXPECT_TRUE(std::equal(results[0].data(), results[0].data() + results[0].ByteSize(), results[1].data()));
}

TEST(PixelConvolution, LeavesFullVectorsToOthers) {
  const DeviceSpec& spec = Runner().spec();
  const std::vector<Case> others = {
      {"f32[1,9,70,3]", "f32[3,3,3,16]", "f32[1,9,70,16]", "size=3x3 pad=1_1x1_1"},
      {"f32[1,9,70,32]", "f32[3,3,32,1]", "f32[1,9,70,1]", "size=3x3 pad=1_1x1_1"},
      {"f32[1,9,70,16]", "f32[3,3,1,16]", "f32[1,9,70,16]", "size=3x3 pad=1_1x1_1", Grouped(16)},
      {"f32[1,9,3,1]", "f32[3,3,1,1]", "f32[1,9,3,1]", "size=3x3 pad=1_1x1_1"},
      {"f32[1,9,70,3]", "f32[1,1,3,3]", "f32[1,9,70,3]", "size=1x1"},
      // Most of what is copied would lie between the taps.
      {"f32[1,256,256,3]", "f32[3,3,1,3]", "f32[1,256,256,3]", "size=3x3 pad=64_64x64_64 rhs_dilate=64x64", Grouped(3)},
  };
  for (const Case& c : others) EXPECT_FALSE(PlanOf(c, spec).has_value()) << c.input << " x " << c.weights;
}

}  // namespace
}  // namespace hlorun::opencl
