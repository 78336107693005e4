// Convolutions on the device against sums in double on the host.
#include "backends/opencl/kernels/convolution.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backends/opencl/codegen/fragments.h"
#include "backends/opencl/kernels/convolution_plan.h"
#include "backends/opencl/kernels/matrix_unit_gradient_plan.h"
#include "backends/opencl/kernels/matrix_unit_plan.h"
#include "backends/opencl/kernels/winograd_plan.h"
#include "hlo/module.h"
#include "hlo/text/parser.h"
#include "tests/backends/convolution_case.h"

namespace hlorun::opencl {
namespace {

using hlo::ElementType;
using hlo::Literal;

using Case = ConvolutionCase;

const std::vector<Case>& Cases() {
  static const std::vector<Case> kCases = {
      {"f32[2,9,11,5]", "f32[3,3,5,20]", "f32[2,9,11,20]", "size=3x3 pad=1_1x1_1"},
      {"f32[1,16,16,3]", "f32[7,7,3,40]", "f32[1,8,8,40]", "size=7x7 stride=2x2 pad=3_3x3_3"},
      {"f32[3,7,7,33]", "f32[3,3,33,64]", "f32[3,7,7,64]", "size=3x3 pad=1_1x1_1"},
      {"f32[2,8,8,16]", "f32[3,3,16,35]", "f32[2,4,4,35]", "size=3x3 stride=2x2 pad=0_1x0_1"},
      {"f32[2,6,7,16]", "f32[1,1,16,35]", "f32[2,6,7,35]", "size=1x1"},
      {"f32[2,9,7,6]", "f32[1,1,6,17]", "f32[2,5,4,17]", "size=1x1 stride=2x2"},
      {"f32[1,5,30,4]", "f32[2,3,4,33]", "f32[1,4,28,33]", "size=2x3"},
      {"f32[1,12,12,4]", "f32[3,3,4,8]", "f32[1,12,12,8]", "size=3x3 pad=2_2x2_2 rhs_dilate=2x2"},
      {"f32[2,4,5,6]", "f32[3,3,6,16]", "f32[2,8,10,16]", "size=3x3 pad=2_1x2_1 lhs_dilate=2x2"},
      {"f32[2,4,4,6]", "f32[1,1,6,16]", "f32[2,8,8,16]", "size=1x1 pad=0_1x0_1 lhs_dilate=2x2"},
      {"f32[1,10,10,3]", "f32[3,3,3,5]", "f32[1,6,7,5]", "size=3x3 pad=-1_-1x0_-1"},
      {"f32[1,32,32,3]", "f32[16,16,3,48]", "f32[1,2,2,48]", "size=16x16 stride=16x16"},
      {"f32[1,37,2,3]", "f32[3,2,3,5]", "f32[1,37,1,5]", "size=3x2 pad=1_1x0_0"},
      {"f32[2,30,8]", "f32[3,8,20]", "f32[2,30,20]", "size=3 pad=1_1", "b0f_0io->b0f"},
      {"bf16[1,9,9,8]", "bf16[3,3,8,20]", "bf16[1,9,9,20]", "size=3x3 pad=1_1x1_1"},
      {"bf16[1,9,9,7]", "bf16[3,3,7,20]", "bf16[1,9,9,20]", "size=3x3 pad=1_1x1_1"},
      // Channels by twos, where the CPU multiplies pairs of bf16.
      {"bf16[2,21,18,32]", "bf16[3,3,32,48]", "bf16[2,11,9,48]", "size=3x3 stride=2x2 pad=1_1x1_1"},
      {"bf16[1,12,12,6]", "bf16[3,3,6,33]", "bf16[1,12,12,33]", "size=3x3 pad=2_2x2_2 rhs_dilate=2x2"},
      {"bf16[2,4,5,6]", "bf16[3,3,6,16]", "bf16[2,8,10,16]", "size=3x3 pad=2_1x2_1 lhs_dilate=2x2"},
      {"bf16[1,10,10,2]", "bf16[3,3,2,5]", "bf16[1,6,7,5]", "size=3x3 pad=-1_-1x0_-1"},
      {"bf16[1,27,27,10]", "bf16[5,5,10,96]", "bf16[1,27,27,96]", "size=5x5 pad=2_2x2_2"},
      {"bf16[2,30,8]", "bf16[3,8,20]", "bf16[2,30,20]", "size=3 pad=1_1", "b0f_0io->b0f"},
      // And where their number is odd, pairs that overlap: stems, padding of every kind, an even window.
      {"bf16[2,18,22,3]", "bf16[7,7,3,40]", "bf16[2,9,11,40]", "size=7x7 stride=2x2 pad=3_3x3_3"},
      {"bf16[1,13,17,1]", "bf16[5,5,1,32]", "bf16[1,13,17,32]", "size=5x5 pad=2_2x2_2"},
      {"bf16[1,12,13,3]", "bf16[4,4,3,35]", "bf16[1,3,3,35]", "size=4x4 stride=4x4"},
      {"bf16[1,10,10,3]", "bf16[3,3,3,16]", "bf16[1,6,7,16]", "size=3x3 pad=-1_-1x0_-1"},
      {"bf16[1,5,9,3]", "bf16[3,3,3,16]", "bf16[1,8,10,16]", "size=3x3 pad=3_2x1_2"},
      {"bf16[2,31,5]", "bf16[3,5,20]", "bf16[2,31,20]", "size=3 pad=1_1", "b0f_0io->b0f"},
      {"f64[1,6,6,4]", "f64[3,3,4,9]", "f64[1,6,6,9]", "size=3x3 pad=1_1x1_1"},
      // Winograd's algorithm: squares that end beyond the image, panels that end beyond the features, every padding.
      {"f32[2,30,27,16]", "f32[3,3,16,35]", "f32[2,30,27,35]", "size=3x3 pad=1_1x1_1"},
      {"f32[3,21,22,48]", "f32[3,3,48,16]", "f32[3,19,20,16]", "size=3x3"},
      {"f32[9,13,12,32]", "f32[3,3,32,64]", "f32[9,15,14,64]", "size=3x3 pad=2_2x2_2"},
      {"bf16[4,24,24,32]", "bf16[3,3,32,40]", "bf16[4,24,24,40]", "size=3x3 pad=1_1x1_1"},
      // Few squares of many features: blocks have parts of them, the last a smaller one.
      {"f32[1,29,30,64]", "f32[3,3,64,200]", "f32[1,29,30,200]", "size=3x3 pad=1_1x1_1"},
      // More rows than a block holds, and no multiple of a tile's.
      {"f32[2,301,1,256]", "f32[3,1,256,5]", "f32[2,301,1,5]", "size=3x1 pad=1_1x0_0"},
      {"f32[1,401,2,96]", "f32[5,2,96,20]", "f32[1,199,1,20]", "size=5x2 stride=2x1"},
  };
  return kCases;
}

// A window for each channel.
const std::vector<Case>& DepthwiseCases() {
  static const std::vector<Case> kCases = {
      {"f32[2,9,37,48]", "f32[3,3,1,48]", "f32[2,9,37,48]", "size=3x3 pad=1_1x1_1", Grouped(48)},
      {"f32[1,7,7,80]", "f32[5,5,1,80]", "f32[1,7,7,80]", "size=5x5 pad=2_2x2_2", Grouped(80)},
      {"f32[1,13,33,24]", "f32[5,5,1,24]", "f32[1,7,17,24]", "size=5x5 stride=2x2 pad=2_2x2_2", Grouped(24)},
      {"f32[1,12,50,16]", "f32[3,3,1,16]", "f32[1,6,25,16]", "size=3x3 stride=2x2 pad=0_1x0_1", Grouped(16)},
      {"f32[3,20,31,12]", "f32[7,7,1,12]", "f32[3,20,31,12]", "size=7x7 pad=3_3x3_3", Grouped(12)},
      {"f32[1,15,40,32]", "f32[3,3,1,32]", "f32[1,15,40,32]", "size=3x3 pad=2_2x2_2 rhs_dilate=2x2", Grouped(32)},
      {"f32[1,30,2,16]", "f32[3,1,1,16]", "f32[1,12,4,16]", "size=3x1 stride=2x1 pad=0_-4x1_1", Grouped(16)},
      {"f32[2,30,29,32]", "f32[1,1,1,32]", "f32[2,15,15,32]", "size=1x1 stride=2x2", Grouped(32)},
      {"f32[1,12,64,16]", "f32[3,1,1,16]", "f32[1,6,22,16]", "size=3x1 stride=2x3 pad=0_1x0_0", Grouped(16)},
      {"f32[1,1,100,112]", "f32[1,31,1,112]", "f32[1,1,100,112]", "size=1x31 pad=0_0x15_15", Grouped(112)},
      {"f32[2,5,4,20]", "f32[9,9,1,20]", "f32[2,5,4,20]", "size=9x9 pad=4_4x4_4", Grouped(20)},
      {"f32[1,5,6,32]", "f32[2,4,1,32]", "f32[1,9,12,32]", "size=2x4 pad=3_2x5_4", Grouped(32)},
      {"bf16[2,9,20,96]", "bf16[3,3,1,96]", "bf16[2,9,20,96]", "size=3x3 pad=1_1x1_1", Grouped(96)},
      {"f64[1,8,9,24]", "f64[3,3,1,24]", "f64[1,8,9,24]", "size=3x3 pad=1_1x1_1", Grouped(24)},
      {"s32[1,8,9,16]", "s32[3,3,1,16]", "s32[1,8,9,16]", "size=3x3 pad=1_1x1_1", Grouped(16)},
      // Channels behind the last whole vector: of one block, of several, of half vectors, fewer than those.
      {"f32[2,9,37,58]", "f32[3,3,1,58]", "f32[2,9,37,58]", "size=3x3 pad=1_1x1_1", Grouped(58)},
      {"f32[1,14,15,493]", "f32[5,5,1,493]", "f32[1,7,8,493]", "size=5x5 stride=2x2 pad=2_2x2_2", Grouped(493)},
      {"f32[3,6,31,20]", "f32[3,3,1,20]", "f32[3,6,31,20]", "size=3x3 pad=1_1x1_1", Grouped(20)},
      {"f32[1,7,9,11]", "f32[3,3,1,11]", "f32[1,7,9,11]", "size=3x3 pad=1_1x1_1", Grouped(11)},
      {"f32[1,7,9,6]", "f32[3,3,1,6]", "f32[1,7,9,6]", "size=3x3 pad=1_1x1_1", Grouped(6)},
      {"bf16[2,9,20,31]", "bf16[3,3,1,31]", "bf16[2,9,20,31]", "size=3x3 pad=1_1x1_1", Grouped(31)},
      {"f64[1,8,9,13]", "f64[3,3,1,13]", "f64[1,8,9,13]", "size=3x3 pad=1_1x1_1", Grouped(13)},
      {"s32[1,8,9,35]", "s32[3,3,1,35]", "s32[1,8,9,35]", "size=3x3 pad=1_1x1_1", Grouped(35)},
  };
  return kCases;
}

// Gradients of weights.
const std::vector<Case>& GradientCases() {
  static const std::vector<Case> kCases = {
      {"f32[3,9,10,20]", "f32[3,9,10,35]", "f32[3,3,20,35]", "size=9x10 pad=1_1x1_1", "f01b_i01o->01bf"},
      {"f32[2,16,16,3]", "f32[2,8,8,64]", "f32[7,7,3,64]", "size=8x8 pad=3_2x3_2 rhs_dilate=2x2", "f01b_i01o->01bf"},
      {"f32[2,9,9,17]", "f32[2,5,5,16]", "f32[1,1,17,16]", "size=5x5 rhs_dilate=2x2", "f01b_i01o->01bf"},
      {"f32[5,7,7,32]", "f32[5,7,7,96]", "f32[3,3,32,96]", "size=7x7 pad=1_1x1_1", "f01b_i01o->01bf"},
      {"f32[2,12,12,5]", "f32[2,8,8,33]", "f32[3,3,5,33]", "size=8x8 stride=2x2", "f01b_i01o->01bf"},
      {"f32[2,10,10,5]", "f32[2,8,8,33]", "f32[2,1,5,33]", "size=8x8 pad=-1_0x-1_-1", "f01b_i01o->01bf"},
      {"f32[4,300,15]", "f32[4,300,20]", "f32[3,15,20]", "size=300 pad=1_1", "f0b_i0o->0bf"},
      {"bf16[2,9,10,20]", "bf16[2,9,10,40]", "bf16[3,3,20,40]", "size=9x10 pad=1_1x1_1", "f01b_i01o->01bf"},
      {"f64[2,9,10,20]", "f64[2,9,10,40]", "f64[3,3,20,40]", "size=9x10 pad=1_1x1_1", "f01b_i01o->01bf"},
      {"f32[40,40,40,4]", "f32[40,40,40,48]", "f32[3,3,4,48]", "size=40x40 pad=1_1x1_1", "f01b_i01o->01bf"},
      // Copied to tiles and panels, the last of which repeat some of those before.
      {"f32[3,11,12,256]", "f32[3,11,12,40]", "f32[3,3,256,40]", "size=11x12 pad=1_1x1_1", "f01b_i01o->01bf"},
      {"f32[5,17,15,57]", "f32[5,9,8,256]", "f32[3,3,57,256]", "size=9x8 pad=1_1x1_1 rhs_dilate=2x2",
       "f01b_i01o->01bf"},
      {"bf16[4,9,10,75]", "bf16[4,9,10,512]", "bf16[3,3,75,512]", "size=9x10 pad=1_1x1_1", "f01b_i01o->01bf"},
  };
  return kCases;
}

// Groups of features, of several channels each or of one.
const std::vector<Case>& GroupedGradientCases() {
  const auto labels = [](int64_t groups) { return fmt::format("f01b_i01o->01bf, batch_group_count={}", groups); };
  static const std::vector<Case> kCases = {
      {"f32[3,9,10,35]", "f32[3,9,10,35]", "f32[3,3,1,35]", "size=9x10 pad=1_1x1_1", labels(35)},
      {"f32[2,16,16,80]", "f32[2,8,8,80]", "f32[7,7,1,80]", "size=8x8 pad=3_2x3_2 rhs_dilate=2x2", labels(80)},
      {"f32[40,20,24,24]", "f32[40,20,24,24]", "f32[5,5,1,24]", "size=20x24 pad=2_2x2_2", labels(24)},
      {"f32[2,3,2,16]", "f32[2,3,2,16]", "f32[5,9,1,16]", "size=3x2 pad=2_2x4_4", labels(16)},
      {"f32[1,4,70,16]", "f32[1,4,70,16]", "f32[1,31,1,16]", "size=4x70 pad=0_0x15_15", labels(16)},
      {"f32[2,12,12,33]", "f32[2,5,5,33]", "f32[2,2,1,33]", "size=5x5 stride=3x3 rhs_dilate=2x2 pad=0_0x1_-1",
       labels(33)},
      {"f32[2,10,10,64]", "f32[2,8,8,64]", "f32[2,1,1,64]", "size=8x8 pad=-1_0x-1_-1", labels(64)},
      {"f32[4,300,20]", "f32[4,300,20]", "f32[3,1,20]", "size=300 pad=1_1", "f0b_i0o->0bf, batch_group_count=20"},
      {"bf16[2,9,10,40]", "bf16[2,9,10,40]", "bf16[3,3,1,40]", "size=9x10 pad=1_1x1_1", labels(40)},
      {"f64[2,9,10,40]", "f64[2,9,10,40]", "f64[3,3,1,40]", "size=9x10 pad=1_1x1_1", labels(40)},
      {"f32[2,9,10,12]", "f32[2,9,10,96]", "f32[3,3,4,96]", "size=9x10 pad=1_1x1_1", labels(3)},
      {"f32[3,13,8,32]", "f32[3,7,4,40]", "f32[3,3,16,40]", "size=7x4 pad=1_1x1_0 rhs_dilate=2x2", labels(2)},
      {"f32[2,50,50]", "f32[2,50,76]", "f32[9,25,76]", "size=50 pad=4_4", "f0b_i0o->0bf, batch_group_count=2"},
      {"bf16[2,9,10,34]", "bf16[2,9,10,34]", "bf16[3,3,17,34]", "size=9x10 pad=1_1x1_1", labels(2)},
  };
  return kCases;
}

TEST(Convolution, EveryForm) {
  for (const Case& c : Cases()) ExpectConvolution(c, false, Runner().spec());
}

TEST(Convolution, Depthwise) {
  DeviceSpec narrow = Runner().spec();
  narrow.vector_bytes = 16;
  narrow.compute_units = 1;
  for (size_t i = 0; i < DepthwiseCases().size(); ++i) {
    const Case& c = DepthwiseCases()[i];
    const auto module = hlo::ParseModule(ConvolutionText(c, false));
    const bool registers_hold_the_window = c.weights.find("[1,31,") == std::string::npos;
    EXPECT_EQ(EmitConvolution(*module->entry()->root(), {-1}, {Runner().spec(), {}}).has_value(),
              registers_hold_the_window);
    if (!registers_hold_the_window) continue;
    ExpectConvolution(c, i % 2 == 0, Runner().spec());
    if (c.input[0] != 'f' || i < 3) ExpectConvolution(c, i % 2 != 0, i < 3 ? narrow : Runner().spec());
  }
}

// Vectors that reach back over channels of the one before: as long as a register, half of it and a quarter.
TEST(Convolution, DepthwiseChannelsLeft) {
  for (const int64_t vector_bytes : {16, 32, 64}) {
    DeviceSpec spec = Runner().spec();
    spec.vector_bytes = vector_bytes;
    for (const int64_t channels : {5, 7, 11, 18, 20, 37, 58, 93}) {
      const Case c{fmt::format("f32[1,6,13,{}]", channels), fmt::format("f32[3,3,1,{}]", channels),
                   fmt::format("f32[1,6,13,{}]", channels), "size=3x3 pad=1_1x1_1", Grouped(channels)};
      ExpectConvolution(c, channels % 2 == 0, spec);
    }
  }
}

// Where input and result are more than the last cache keeps, vectors that are whole lines go past it.
TEST(Convolution, DepthwiseResultsPastTheCaches) {
  DeviceSpec spec = Runner().spec();
  const auto passes = [&](const Case& c, bool fused) {
    const auto module = hlo::ParseModule(ConvolutionText(c, fused));
    const auto launches = EmitConvolution(*module->entry()->root(), {-1}, {spec, {}});
    return launches && launches->front().source.find("nontemporal") != std::string::npos;
  };
  const auto of = [](const std::string& type, int64_t channels) {
    const std::string array = fmt::format("{}[2,9,17,{}]", type, channels);
    return Case{array, fmt::format("{}[3,3,1,{}]", type, channels), array, "size=3x3 pad=1_1x1_1", Grouped(channels)};
  };
  for (const bool fused : {false, true}) {
    for (const auto& [vector_bytes, l3_bytes] :
         {std::pair<int64_t, int64_t>{64, 1 << 12}, {64, 1 << 30}, {32, 1 << 12}}) {
      spec.vector_bytes = vector_bytes;
      spec.l3_bytes = l3_bytes;
      const bool may = vector_bytes == 64 && l3_bytes == 1 << 12;
      EXPECT_EQ(passes(of("f32", 48), fused), may) << fused;
      EXPECT_FALSE(passes(of("f32", 44), fused)) << fused;   // whole vectors that begin anywhere
      EXPECT_FALSE(passes(of("f32", 40), fused)) << fused;   // half vectors
      EXPECT_FALSE(passes(of("bf16", 64), fused)) << fused;  // halves of lines
      const std::pair<const char*, int64_t> cases[] = {{"f32", 48}, {"f32", 44}, {"f32", 40}, {"bf16", 64}};
      for (const auto& [type, channels] : cases) ExpectConvolution(of(type, channels), fused, spec);
    }
  }
}

TEST(Convolution, GradientsOfWeights) {
  for (const Case& c : GradientCases()) ExpectConvolution(c, c.input[0] == 'b', Runner().spec());
  for (size_t i = 0; i < 4; ++i) ExpectConvolution(GradientCases()[i], true, Runner().spec());
  DeviceSpec narrow = Runner().spec();
  narrow.vector_bytes = 16;
  narrow.l2_bytes = 1 << 12;  // several blocks of rows a part
  for (size_t i = 0; i < GroupedGradientCases().size(); ++i) {
    ExpectConvolution(GroupedGradientCases()[i], i % 2 == 0, Runner().spec());
    ExpectConvolution(GroupedGradientCases()[i], i % 2 != 0, narrow);
  }
}

// Outputs of a square, rows x columns: 0 where another way is taken.
struct FormCase {
  Case convolution;
  int64_t rows, columns;
  bool weights_are_constant = false;
};

TEST(Convolution, WinogradsFormByWindowAndSize) {
  const std::vector<FormCase> cases = {
      {{"f32[4,21,23,64]", "f32[3,3,64,64]", "f32[4,21,23,64]", "size=3x3 pad=1_1x1_1"}, 4, 4},
      {{"f32[2,27,26,64]", "f32[5,5,64,70]", "f32[2,27,26,70]", "size=5x5 pad=2_2x2_2"}, 2, 2},
      {{"f32[2,37,39,64]", "f32[4,4,64,64]", "f32[2,34,36,64]", "size=4x4"}, 3, 3},
      {{"f32[4,29,33,64]", "f32[2,2,64,64]", "f32[4,29,33,64]", "size=2x2 pad=1_0x0_1"}, 5, 5},
      {{"f32[4,30,31,64]", "f32[3,5,64,64]", "f32[4,30,31,64]", "size=3x5 pad=1_1x2_2"}, 4, 2},
      {{"f32[4,30,31,64]", "f32[1,3,64,80]", "f32[4,30,31,80]", "size=1x3 pad=0_0x1_1"}, 1, 4},
      {{"f32[4,30,31,64]", "f32[3,1,64,64]", "f32[4,30,31,64]", "size=3x1 pad=1_1x0_0"}, 4, 1},
      {{"f32[4,301,64]", "f32[3,64,96]", "f32[4,301,96]", "size=3 pad=1_1", "b0f_0io->b0f"}, 1, 4},
      {{"f32[2,33,30,64]", "f32[3,3,64,64]", "f32[2,33,30,64]", "size=3x3 pad=2_2x3_3 rhs_dilate=2x3"}, 4, 4},
      {{"f32[4,200,64]", "f32[3,64,96]", "f32[4,186,96]", "size=3 rhs_dilate=7", "b0f_0io->b0f"}, 1, 4},
      // Six points are too few squares.
      {{"f32[1,7,7,128]", "f32[3,3,128,128]", "f32[1,7,7,128]", "size=3x3 pad=1_1x1_1"}, 2, 2, true},
      {{"f32[4,30,31,64]", "f32[3,6,64,64]", "f32[4,30,31,64]", "size=3x6 pad=1_1x2_3"}, 0, 0},
      {{"f32[2,28,28,64]", "f32[3,3,64,64]", "f32[2,14,14,64]", "size=3x3 stride=2x2 pad=0_1x0_1"}, 0, 0},
      {{"f32[2,28,28,64]", "f32[1,1,64,64]", "f32[2,28,28,64]", "size=1x1"}, 0, 0},
  };
  for (const FormCase& c : cases) {
    SCOPED_TRACE(c.convolution.input + " {" + c.convolution.window + "}");
    CompileOptions options;
    if (c.weights_are_constant) options.constant_parameters = {1};
    const auto module = hlo::ParseModule(ConvolutionText(c.convolution, false));
    std::optional<ConvolutionShape> shape = ConvolutionShapeOf(*module->entry()->root());
    ASSERT_TRUE(shape.has_value());
    shape->weights_are_constant = c.weights_are_constant;
    const std::optional<WinogradPlan> plan = PlanWinograd(*shape, Runner().spec());
    EXPECT_EQ(plan ? plan->rows.outputs : 0, c.rows);
    EXPECT_EQ(plan ? plan->columns.outputs : 0, c.columns);
    const bool fused = c.rows % 2 == 0;
    ExpectConvolution(c.convolution, fused, Runner().spec(), options);
    DeviceSpec narrow = Runner().spec();
    narrow.vector_bytes = 32;
    narrow.l2_bytes = 64 << 10;  // images are far
    ExpectConvolution(c.convolution, !fused, narrow, options);
  }
}

// Few squares pay where the weights are transformed once.
TEST(Convolution, SquaresOfConstantWeights) {
  CompileOptions options;
  options.constant_parameters = {1};
  const std::vector<Case> cases = {
      {"f32[1,15,17,48]", "f32[3,3,48,35]", "f32[1,15,17,35]", "size=3x3 pad=1_1x1_1"},
      {"bf16[1,18,21,64]", "bf16[3,3,64,80]", "bf16[1,16,19,80]", "size=3x3"},
      {"f32[1,5,5,64]", "f32[3,3,64,64]", "f32[1,5,5,64]", "size=3x3 pad=1_1x1_1"},
  };
  for (const Case& c : cases) {
    const auto module = hlo::ParseModule(ConvolutionText(c, false));
    const hlo::Instruction& root = *module->entry()->root();
    const bool few = c.input.find("[1,5,") != std::string::npos;
    const int64_t kept = ConvolutionScratchBytes(root, {Runner().spec(), options});
    EXPECT_EQ(kept > ConvolutionScratchBytes(root, {Runner().spec(), {}}), !few) << c.input;
    if (!few) ExpectConvolution(c, c.input[0] == 'b', Runner().spec(), options);
  }
}

// Weights beyond the second cache are read once by each block of rows: few blocks of rows, of few panels each. Rows are
// copied again for each run of panels: two blocks a unit are enough.
TEST(Convolution, BlocksOfFarWeightsHaveManyRows) {
  const Case far = {"f32[1,14,14,64]", "f32[3,3,64,256]", "f32[1,7,7,256]", "size=3x3 stride=2x2 pad=1_1x1_1"};
  DeviceSpec spec = Runner().spec();
  spec.compute_units = 2;
  const auto module = hlo::ParseModule(ConvolutionText(far, false));
  const std::optional<ConvolutionShape> shape = ConvolutionShapeOf(*module->entry()->root());
  ASSERT_TRUE(shape.has_value());
  spec.l2_bytes = 256 << 10;
  const ConvolutionPlan plan = PlanConvolution(*shape, spec);
  EXPECT_EQ(plan.row_blocks(), 1);
  EXPECT_EQ(plan.blocks(), 4);
  spec.l2_bytes = 8 << 20;
  EXPECT_GT(PlanConvolution(*shape, spec).row_blocks(), 1);
  // Where images alone are blocks enough, all rows of one beside a panel of weights; one image is cut.
  spec.l2_bytes = 200 << 10;
  const Case images = {"f32[16,14,14,64]", "f32[3,3,64,256]", "f32[16,7,7,256]", "size=3x3 stride=2x2 pad=0_1x0_1"};
  ConvolutionShape of_images = *shape;
  of_images.batch = 16;
  EXPECT_EQ(PlanConvolution(of_images, spec).row_blocks(), 1);
  of_images.batch = 1;
  EXPECT_GT(PlanConvolution(of_images, spec).row_blocks(), 1);
  for (const bool fused : {false, true}) {
    ExpectConvolution(images, fused, spec);
    ExpectConvolution({"f32[9,22,13,48]", "f32[5,5,48,100]", "f32[9,9,9,100]", "size=5x5 stride=2x1"}, fused, spec);
  }
  for (const bool fused : {false, true}) {
    for (const int64_t l2_bytes : {64 << 10, 256 << 10, 512 << 10, 8 << 20}) {
      spec.l2_bytes = l2_bytes;
      ExpectConvolution(far, fused, spec);
      ExpectConvolution({"f32[2,9,11,48]", "f32[5,5,48,100]", "f32[2,5,7,100]", "size=5x5"}, fused, spec);
      ExpectConvolution({"f32[1,13,9,48]", "f32[5,5,48,100]", "f32[1,13,3,100]", "size=5x5 pad=2_2x0_0 stride=1x2"},
                        fused, spec);
    }
  }
}

// A window of one element is a product of pixels and weights.
TEST(Convolution, PointwiseByTheMatrixUnit) {
  const std::optional<DeviceSpec> spec = Runner().WithMatrixUnit();
  if (!spec) GTEST_SKIP() << "no matrix unit here: not measured";
  const std::vector<Case> cases = {
      {"bf16[2,9,13,72]", "bf16[1,1,72,45]", "bf16[2,9,13,45]", "size=1x1"},
      {"bf16[1,16,16,64]", "bf16[1,1,64,64]", "bf16[1,16,16,64]", "size=1x1"},
      {"bf16[3,50,33]", "bf16[1,33,130]", "bf16[3,50,130]", "size=1", "b0f_0io->b0f"},
  };
  for (const Case& c : cases) {
    const auto module = hlo::ParseModule(ConvolutionText(c, false));
    const hlo::Instruction& root = *module->entry()->root();
    DeviceSpec without = *spec;
    without.has_bf16_tiles = false;
    EXPECT_NE(ConvolutionScratchBytes(root, {*spec, {}}), ConvolutionScratchBytes(root, {without, {}})) << c.input;
    for (const bool fused : {false, true}) ExpectConvolution(c, fused, *spec);
  }
}

// Over windows; nullopt also where the convolution has no form that kernels have.
std::optional<MatrixUnitPlan> UnitPlanOf(const Case& c, const DeviceSpec& spec) {
  const auto module = hlo::ParseModule(ConvolutionText(c, false));
  const std::optional<ConvolutionShape> shape = ConvolutionShapeOf(*module->entry()->root());
  return shape ? PlanMatrixUnitOverWindows(*shape, spec) : std::nullopt;
}

void ExpectByTheMatrixUnit(const Case& c, const DeviceSpec& spec, bool by_lines) {
  SCOPED_TRACE(c.input + " {" + c.window + "}");
  const std::optional<MatrixUnitPlan> plan = UnitPlanOf(c, spec);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->by_lines, by_lines);
  for (const bool fused : {false, true}) {
    ExpectConvolution(c, fused, spec);
    DeviceSpec small = spec;
    small.l2_bytes = 64 << 10;
    ExpectConvolution(c, fused, small);
  }
}

// Windows as rows that the work-group copies: channels in words and not, runs shorter and longer than a vector, sums at
// once and in parts, borders, holes, blocks of rows that two images share, groups of columns, a row's end that is none.
TEST(Convolution, WindowsByTheMatrixUnit) {
  const std::optional<DeviceSpec> spec = Runner().WithMatrixUnit();
  if (!spec) GTEST_SKIP() << "no matrix unit here: not measured";
  const std::vector<Case> cases = {
      {"bf16[2,9,13,24]", "bf16[3,3,24,45]", "bf16[2,9,13,45]", "size=3x3 pad=1_1x1_1"},
      {"bf16[1,20,22,3]", "bf16[7,7,3,64]", "bf16[1,10,11,64]", "size=7x7 stride=2x2 pad=3_3x3_3"},
      {"bf16[1,12,40,5]", "bf16[2,3,5,33]", "bf16[1,11,38,33]", "size=2x3"},
      {"bf16[1,16,16,24]", "bf16[3,3,24,70]", "bf16[1,14,14,70]", "size=3x3 pad=3_0x1_2 rhs_dilate=2x2"},
      {"bf16[3,7,7,128]", "bf16[3,3,128,700]", "bf16[3,4,4,700]", "size=3x3 stride=2x2 pad=1_1x1_1"},
      {"bf16[2,70,21]", "bf16[5,21,48]", "bf16[2,68,48]", "size=5 pad=1_1", "b0f_0io->b0f"},
      {"s8[2,9,13,24]", "s8[3,3,24,45]", "s32[2,9,13,45]", "size=3x3 pad=1_1x1_1"},
      {"s8[1,12,40,5]", "s8[3,3,5,33]", "s32[1,6,20,33]", "size=3x3 stride=2x2 pad=1_1x1_1"},
  };
  for (const Case& c : cases) ExpectByTheMatrixUnit(c, *spec, /*by_lines=*/false);
}

// Lines of the input that the work-group copies: wider and narrower ones than a block, sums at once and in parts,
// images, borders that are not alike, parts of the input left out, signals.
TEST(Convolution, LinesByTheMatrixUnit) {
  const std::optional<DeviceSpec> spec = Runner().WithMatrixUnit();
  if (!spec) GTEST_SKIP() << "no matrix unit here: not measured";
  const std::vector<Case> cases = {
      {"bf16[1,16,16,32]", "bf16[3,3,32,70]", "bf16[1,14,14,70]", "size=3x3 pad=3_0x1_2 rhs_dilate=2x2"},
      {"bf16[1,20,40,32]", "bf16[3,3,32,64]", "bf16[1,20,40,64]", "size=3x3 pad=1_1x1_1"},
      {"bf16[2,13,21,64]", "bf16[3,3,64,70]", "bf16[2,13,21,70]", "size=3x3 pad=1_1x1_1"},
      {"bf16[3,5,70,96]", "bf16[2,3,96,33]", "bf16[3,6,69,33]", "size=2x3 pad=2_0x0_1"},
      {"bf16[1,19,37,128]", "bf16[3,5,128,32]", "bf16[1,15,35,32]", "size=3x5 pad=0_0x2_4 rhs_dilate=2x2"},
      {"bf16[1,12,40,32]", "bf16[3,1,32,40]", "bf16[1,9,36,40]", "size=3x1 pad=0_-1x-2_-2"},
      {"bf16[2,300,64]", "bf16[5,64,48]", "bf16[2,298,48]", "size=5 pad=1_1", "b0f_0io->b0f"},
      {"s8[2,9,50,64]", "s8[3,3,64,45]", "s32[2,9,50,45]", "size=3x3 pad=1_1x1_1"},
      // Groups of columns, parts that do not divide the depth, one pixel a line, more images than work-groups.
      {"bf16[1,9,40,32]", "bf16[3,3,32,300]", "bf16[1,9,40,300]", "size=3x3 pad=1_1x1_1"},
      {"bf16[1,11,45,96]", "bf16[3,3,96,40]", "bf16[1,11,45,40]", "size=3x3 pad=1_1x1_1"},
      {"bf16[1,90,1,64]", "bf16[3,1,64,40]", "bf16[1,90,1,40]", "size=3x1 pad=1_1x0_0"},
      {"bf16[37,9,13,32]", "bf16[3,3,32,33]", "bf16[37,9,13,33]", "size=3x3 pad=1_1x1_1"},
  };
  for (const Case& c : cases) ExpectByTheMatrixUnit(c, *spec, /*by_lines=*/true);
}

// Copies of wide lines, of long signals, of deep pixels and of many images stay in the second cache.
TEST(Convolution, LinesThatTheMatrixUnitCopiesAreFew) {
  const std::optional<DeviceSpec> spec = Runner().WithMatrixUnit();
  if (!spec) GTEST_SKIP() << "no matrix unit here: not measured";
  const std::vector<Case> cases = {
      {"bf16[1,512,512,128]", "bf16[3,3,128,128]", "bf16[1,512,512,128]", "size=3x3 pad=1_1x1_1"},
      {"bf16[1,1024,1024,64]", "bf16[3,3,64,64]", "bf16[1,1024,1024,64]", "size=3x3 pad=1_1x1_1"},
      {"bf16[1,56,56,1024]", "bf16[3,3,1024,256]", "bf16[1,56,56,256]", "size=3x3 pad=1_1x1_1"},
      {"bf16[1,65536,32]", "bf16[7,32,32]", "bf16[1,65536,32]", "size=7 pad=3_3", "b0f_0io->b0f"},
      {"bf16[1,1500,384]", "bf16[3,384,384]", "bf16[1,1500,384]", "size=3 pad=1_1", "b0f_0io->b0f"},
      {"bf16[256,56,56,64]", "bf16[3,3,64,64]", "bf16[256,56,56,64]", "size=3x3 pad=1_1x1_1"},
      {"bf16[64,5,5,64]", "bf16[3,3,64,64]", "bf16[64,5,5,64]", "size=3x3 pad=1_1x1_1"},
  };
  for (const Case& c : cases) {
    const std::optional<MatrixUnitPlan> plan = UnitPlanOf(c, *spec);
    ASSERT_TRUE(plan.has_value()) << c.input;
    EXPECT_LE(plan->LhsBytes(), 4 * spec->compute_units * spec->l2_bytes) << c.input;
    if (!plan->by_lines) continue;
    EXPECT_LE(plan->PanelBytes(), spec->l2_bytes / 4) << c.input;
    const int64_t pixels = plan->windows.batch * plan->windows.rows.out * plan->windows.columns.out;
    EXPECT_LT(plan->RowGroups() * plan->CopiedPixels(), 6 * pixels) << c.input;
    EXPECT_LT(plan->windows.batch * plan->row_blocks * MatrixUnitPlan::kBlock, 2 * pixels) << c.input;
  }
}

TEST(Convolution, GradientsOfWeightsByTheMatrixUnit) {
  const std::optional<DeviceSpec> spec = Runner().WithMatrixUnit();
  if (!spec) GTEST_SKIP() << "no matrix unit here: not measured";
  const std::vector<Case> cases = {
      // Chunks of an image and of several, parts, phases of strided windows,
      // taps apart, padding that is negative, blocks that end with few channels or features.
      {"bf16[2,40,41,32]", "bf16[2,40,41,40]", "bf16[3,3,32,40]", "size=40x41 pad=1_1x1_1", "f01b_i01o->01bf"},
      {"bf16[9,7,7,96]", "bf16[9,7,7,80]", "bf16[3,3,96,80]", "size=7x7 pad=1_1x1_1", "f01b_i01o->01bf"},
      {"bf16[4,17,18,40]", "bf16[4,9,9,33]", "bf16[3,3,40,33]", "size=9x9 pad=1_1x1_0 rhs_dilate=2x2",
       "f01b_i01o->01bf"},
      {"bf16[4,17,17,48]", "bf16[4,9,9,64]", "bf16[1,1,48,64]", "size=9x9 rhs_dilate=2x2", "f01b_i01o->01bf"},
      {"bf16[2,20,20,48]", "bf16[2,16,16,64]", "bf16[3,3,48,64]", "size=16x16 stride=2x2", "f01b_i01o->01bf"},
      {"bf16[2,50,51,32]", "bf16[2,16,16,16]", "bf16[3,2,32,16]", "size=16x16 stride=2x3 rhs_dilate=3x3 pad=0_0x1_0",
       "f01b_i01o->01bf"},
      {"bf16[2,22,22,32]", "bf16[2,16,16,32]", "bf16[5,4,32,32]", "size=16x16 pad=-1_-1x-2_-1", "f01b_i01o->01bf"},
      // Taps of a row as channels: stems, an even window, padding of every kind.
      {"bf16[2,34,38,3]", "bf16[2,17,19,40]", "bf16[7,7,3,40]", "size=17x19 pad=3_2x3_2 rhs_dilate=2x2",
       "f01b_i01o->01bf"},
      {"bf16[2,21,19,16]", "bf16[2,20,18,64]", "bf16[4,4,16,64]", "size=20x18 pad=1_1x2_0", "f01b_i01o->01bf"},
      {"bf16[5,9,9,5]", "bf16[5,10,9,32]", "bf16[3,5,5,32]", "size=10x9 pad=2_1x-1_5", "f01b_i01o->01bf"},
      {"bf16[4,90,32]", "bf16[4,90,48]", "bf16[5,32,48]", "size=90 pad=2_2", "f0b_i0o->0bf"},
      // In parts.
      {"f32[2,14,16,224]", "f32[2,14,16,221]", "f32[3,3,224,221]", "size=14x16 pad=1_1x1_1", "f01b_i01o->01bf"},
      {"f32[3,8,18,160]", "f32[3,8,18,160]", "f32[3,3,160,160]", "size=8x18 pad=1_1x1_1", "f01b_i01o->01bf"},
      {"f32[1,33,33,128]", "f32[1,17,17,128]", "f32[7,7,128,128]", "size=17x17 pad=3_3x3_3 rhs_dilate=2x2",
       "f01b_i01o->01bf"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.input + " {" + c.window + "}");
    const auto module = hlo::ParseModule(ConvolutionText(c, false));
    const std::optional<WeightGradientShape> shape = WeightGradientShapeOf(*module->entry()->root());
    ASSERT_TRUE(shape.has_value());
    EXPECT_TRUE(PlanMatrixUnitGradient(*shape, *spec).has_value());
    for (const bool fused : {false, true}) {
      ExpectConvolution(c, fused, *spec);
      DeviceSpec small = *spec;
      small.l2_bytes = 64 << 10;
      ExpectConvolution(c, fused, small);
      const auto root = hlo::ParseModule(ConvolutionText(c, fused));
      const std::vector<Literal> operands = RandomOperands(*root->entry()->root());
      EXPECT_TRUE(OnDevice(*root->entry()->root(), operands, *spec, {}) ==
                  OnDevice(*root->entry()->root(), operands, small, {}));
    }
  }
}

TEST(Convolution, GradientsByTheMatrixUnitWhereCopiesPay) {
  DeviceSpec spec;
  spec.has_bf16_tiles = true;
  const auto plan_of = [&](const Case& c) {
    const auto module = hlo::ParseModule(ConvolutionText(c, false));
    return PlanMatrixUnitGradient(*WeightGradientShapeOf(*module->entry()->root()), spec);
  };
  const std::string labels = "f01b_i01o->01bf";
  EXPECT_TRUE(
      plan_of({"f32[32,14,14,256]", "f32[32,14,14,256]", "f32[3,3,256,256]", "size=14x14 pad=1_1x1_1", labels}));
  EXPECT_FALSE(plan_of({"f32[32,7,7,512]", "f32[32,7,7,512]", "f32[3,3,512,512]", "size=7x7 pad=1_1x1_1", labels}));
  EXPECT_FALSE(plan_of({"f32[32,56,56,64]", "f32[32,56,56,64]", "f32[3,3,64,64]", "size=56x56 pad=1_1x1_1", labels}));
  const auto stem = plan_of(
      {"bf16[2,34,38,3]", "bf16[2,17,19,40]", "bf16[7,7,3,40]", "size=17x19 pad=3_2x3_2 rhs_dilate=2x2", labels});
  EXPECT_EQ(stem->taps_together, 7);
  // Copied a hundred times it would be.
  const auto wave = plan_of({"bf16[8,16099,16]", "bf16[8,16000,32]", "bf16[100,16,32]", "size=16000", "f0b_i0o->0bf"});
  EXPECT_EQ(wave->taps_together, 1);
}

// What is not finite comes out as by multiplications of f32, away from the gradient's borders: there infinite numbers
// of the input meet zeros (docs/convolutions.md).
TEST(Convolution, GradientsInPartsOfWhatIsNotFinite) {
  const std::optional<DeviceSpec> spec = Runner().WithMatrixUnit();
  if (!spec) GTEST_SKIP() << "no matrix unit here: not measured";
  const Case c{"f32[8,14,16,224]", "f32[8,14,16,224]", "f32[3,3,224,224]", "size=14x16 pad=1_1x1_1", "f01b_i01o->01bf"};
  const auto module = hlo::ParseModule(ConvolutionText(c, false));
  const hlo::Instruction& root = *module->entry()->root();
  const std::optional<MatrixUnitGradientPlan> plan = PlanMatrixUnitGradient(*WeightGradientShapeOf(root), *spec);
  ASSERT_TRUE(plan.has_value());
  EXPECT_GT(plan->chunks_of_sum, 1);
  std::vector<Literal> operands = RandomOperands(root);
  const auto inner = [](int64_t channel) { return ((14 + 7) * 16 + 6) * 224 + channel; };  // of the second image
  operands[0].SetDouble(inner(5), INFINITY);
  operands[0].SetDouble(inner(70), NAN);
  operands[1].SetDouble(inner(33), -INFINITY);
  const Literal got = OnDevice(root, operands, *spec, {}), expected = OnDevice(root, operands, Runner().spec(), {});
  int64_t infinite = 0;
  for (int64_t i = 0; i < got.ElementCount(); ++i) {
    const double g = got.GetDouble(i), e = expected.GetDouble(i);
    infinite += std::isinf(e) ? 1 : 0;
    if (std::isfinite(e)) {
      EXPECT_NEAR(g, e, 2e-4) << i;
    } else {
      EXPECT_TRUE(g == e || (std::isnan(g) && std::isnan(e))) << i << ": " << g << ", expected " << e;
    }
  }
  EXPECT_GT(infinite, 1000);
}

TEST(Convolution, BiasAndReluInTheEpilogue) {
  for (const Case& c : Cases()) ExpectConvolution(c, true, Runner().spec());
}

TEST(Convolution, NarrowVectorsAndSmallCaches) {
  DeviceSpec narrow = Runner().spec();
  narrow.vector_bytes = 16;
  narrow.l2_bytes = 4 << 10;
  narrow.compute_units = 5;
  for (const size_t i : {0, 1, 2, 3, 12}) ExpectConvolution(Cases()[i], true, narrow);
}

DeviceSpec GpuSpec() {
  DeviceSpec gpu = Runner().spec();
  gpu.device_class = DeviceClass::kGpu;
  gpu.vector_bytes = 4;
  return gpu;
}

TEST(Convolution, GpuClass) {
  for (size_t i = 0; i < Cases().size(); ++i) ExpectConvolution(Cases()[i], i % 2 == 0, GpuSpec());
}

// Groups are a batch of products: channels and features that fill vectors and do not, windows of every kind, one
// spatial dimension, sums in parts, gradients of weights (channels that are images).
const std::vector<Case>& GroupedCases() {
  static const std::vector<Case> kCases = {
      {"f32[2,9,11,32]", "f32[3,3,8,64]", "f32[2,9,11,64]", "size=3x3 pad=1_1x1_1", Grouped(4)},
      {"f32[1,14,13,33]", "f32[3,3,11,39]", "f32[1,7,7,39]", "size=3x3 stride=2x2 pad=1_1x1_1", Grouped(3)},
      {"f32[1,16,15,24]", "f32[5,3,12,36]", "f32[1,16,13,36]", "size=5x3 pad=4_4x0_2 rhs_dilate=2x2", Grouped(2)},
      {"f32[2,6,5,32]", "f32[3,3,16,32]", "f32[2,12,10,32]", "size=3x3 pad=2_1x2_1 lhs_dilate=2x2", Grouped(2)},
      {"f32[1,12,12,18]", "f32[3,3,9,20]", "f32[1,8,9,20]", "size=3x3 pad=-1_-1x0_-1", Grouped(2)},
      {"f32[2,7,9,64]", "f32[1,1,16,48]", "f32[2,7,9,48]", "size=1x1", Grouped(4)},
      {"f32[2,50,32]", "f32[3,16,24]", "f32[2,50,24]", "size=3 pad=1_1", "b0f_0io->b0f, feature_group_count=2"},
      {"f32[1,5,5,512]", "f32[3,3,256,32]", "f32[1,5,5,32]", "size=3x3 pad=1_1x1_1", Grouped(2)},
      {"f32[16,40,40,6]", "f32[38,38,2,48]", "f32[16,3,3,48]", "size=38x38", Grouped(3)},
      {"bf16[1,13,13,32]", "bf16[3,3,16,48]", "bf16[1,7,7,48]", "size=3x3 stride=2x2 pad=1_1x1_1", Grouped(2)},
      {"bf16[1,9,9,21]", "bf16[3,3,7,30]", "bf16[1,9,9,30]", "size=3x3 pad=2_2x2_2 rhs_dilate=2x2", Grouped(3)},
      {"f64[1,6,6,32]", "f64[3,3,16,18]", "f64[1,6,6,18]", "size=3x3 pad=1_1x1_1", Grouped(2)},
      {"s32[1,8,9,24]", "s32[3,3,12,32]", "s32[1,8,9,32]", "size=3x3 pad=1_1x1_1", Grouped(2)},
  };
  return kCases;
}

// Whether blocks of the operands lie in local memory, and whether matrix instructions multiply them.
std::string KernelOf(const Case& c, const DeviceSpec& spec) {
  const auto module = hlo::ParseModule(ConvolutionText(c, false));
  const auto launches = EmitConvolution(*module->entry()->root(), {-1}, {spec, {}});
  if (!launches) return "loops";
  const std::string& source = launches->front().source;
  return source.find(kFragmentPlain) != std::string::npos ? "fragments"
         : source.find("__local") != std::string::npos    ? "tiles"
                                                          : "";
}

// A square image under a window of 3x3, so many channels and features a group.
Case GroupedSquare(const char* type, int64_t width, int64_t groups, int64_t channels, int64_t features) {
  return {fmt::format("{0}[1,{1},{1},{2}]", type, width, groups * channels),
          fmt::format("{}[3,3,{},{}]", type, channels, groups * features),
          fmt::format("{0}[1,{1},{1},{2}]", type, width, groups * features), "size=3x3 pad=1_1x1_1", Grouped(groups)};
}

// What is asked of the pass that brings convolutions into the kernels' form; of what it makes, nothing more.
TEST(Convolution, WhatFeatureGroupsLack) {
  struct {
    const char* type;
    int64_t width, groups, channels, features;  // of outputs; of a group
    int64_t together, added;
  } constexpr kRows[] = {
      {"f32", 28, 32, 8, 8, 1, 0},   {"f32", 28, 32, 16, 16, 1, 0},  {"f32", 28, 7, 24, 24, 1, 0},
      {"f32", 28, 32, 4, 4, 2, 0},   {"f32", 28, 8, 12, 12, 2, 0},   {"f32", 28, 13, 4, 4, 1, 4},
      {"f32", 28, 3, 20, 20, 1, 4},  {"f32", 28, 13, 4, 1, 1, 0},  // eight times as many
      {"f32", 28, 2, 24, 24, 2, 0},                                // one group has squares
      {"f32", 28, 13, 1, 3, 1, 0},                                 // channels of their own
      {"f32", 28, 3, 5, 5, 1, 0},                                  // pixels are the lanes
      {"f32", 14, 3, 5, 5, 1, 3},                                  // of too few
      {"bf16", 28, 32, 8, 8, 2, 0},  {"bf16", 28, 7, 8, 8, 1, 0},    {"bf16", 28, 3, 20, 20, 1, 12},
      {"bf16", 28, 4, 10, 5, 1, 11}, {"bf16", 28, 14, 10, 3, 1, 13}, {"f64", 28, 3, 20, 20, 1, 0},
      {"f64", 28, 3, 22, 22, 1, 2},
  };
  DeviceSpec spec = Runner().spec();
  spec.device_class = DeviceClass::kCpu;
  spec.vector_bytes = 64;
  spec.bf16_dot = "plain";
  for (const auto& row : kRows) {
    const auto asked = [&](int64_t groups, int64_t channels, int64_t features) {
      const Case c = GroupedSquare(row.type, row.width, groups, channels, features);
      const auto module = hlo::ParseModule(ConvolutionText(c, false));
      const hlo::Instruction& root = *module->entry()->root();
      return std::pair(FeatureGroupsTogether(root, spec), FeaturesToFillVectors(root, spec));
    };
    const auto [together, added] = asked(row.groups, row.channels, row.features);
    EXPECT_EQ(std::pair(together, added), std::pair(row.together, row.added))
        << row.type << " " << row.groups << " of " << row.channels << " to " << row.features;
    EXPECT_EQ(asked(row.groups / together, row.channels * together, row.features * together + added),
              std::pair(int64_t{1}, int64_t{0}))
        << row.type << " " << row.groups << " of " << row.channels << " to " << row.features;
  }
}

TEST(Convolution, ChannelsAreCopiedForEachOfTheirFeatures) {
  struct {
    const char* type;
    int64_t width, groups, channels, features;  // of outputs; of a group
    int64_t copies;
  } constexpr kRows[] = {
      {"f32", 28, 32, 1, 2, 2}, {"f32", 28, 13, 1, 3, 3}, {"bf16", 28, 24, 1, 4, 4}, {"f32", 28, 32, 1, 1, 1},
      {"f32", 28, 32, 2, 4, 1}, {"f32", 28, 1, 1, 32, 1}, {"f32", 28, 7, 1, 4, 1},  // pixels are the lanes
      {"f32", 14, 7, 1, 4, 4},                                                      // of too few
      {"c64", 28, 32, 1, 2, 1}, {"f32", 28, 32, 1, 0, 1},
  };
  DeviceSpec spec = Runner().spec();
  spec.device_class = DeviceClass::kCpu;
  spec.vector_bytes = 64;
  for (const auto& row : kRows) {
    const Case c = GroupedSquare(row.type, row.width, row.groups, row.channels, row.features);
    const auto module = hlo::ParseModule(ConvolutionText(c, false));
    const hlo::Instruction& root = *module->entry()->root();
    EXPECT_EQ(ChannelCopies(root, spec), row.copies) << root.ToString();
    EXPECT_EQ(ChannelCopies(root, GpuSpec()), 1) << root.ToString();
  }
  // Copies many times as large as the result, or for too few multiplications.
  for (const Case& c :
       {Case{"f32[1,64,64,8]", "f32[16,16,1,3072]", "f32[1,4,4,3072]", "size=16x16 stride=16x16", Grouped(8)},
        Case{"f32[1,64,64,8]", "f32[1,1,1,16]", "f32[1,64,64,16]", "size=1x1", Grouped(8)}}) {
    const auto module = hlo::ParseModule(ConvolutionText(c, false));
    EXPECT_EQ(ChannelCopies(*module->entry()->root(), spec), 1) << c.input;
  }
}

// Groups whose features are half a register's, and whole ones.
TEST(Convolution, GroupsOfHalfVectors) {
  const std::vector<Case> cases = {
      {"f32[2,9,30,24]", "f32[3,3,8,24]", "f32[2,9,30,24]", "size=3x3 pad=1_1x1_1", Grouped(3)},
      {"f32[1,14,13,48]", "f32[3,3,24,48]", "f32[1,7,7,48]", "size=3x3 stride=2x2 pad=1_1x1_1", Grouped(2)},
      {"f32[1,12,15,15]", "f32[3,3,5,120]", "f32[1,12,15,120]", "size=3x3 pad=2_2x2_2 rhs_dilate=2x2", Grouped(3)},
      {"f32[1,6,5,768]", "f32[3,3,256,24]", "f32[1,6,5,24]", "size=3x3 pad=1_1x1_1", Grouped(3)},
      {"f32[2,6,5,32]", "f32[3,3,16,32]", "f32[2,12,10,32]", "size=3x3 pad=2_1x2_1 lhs_dilate=2x2", Grouped(2)},
      {"bf16[1,9,20,56]", "bf16[3,3,8,56]", "bf16[1,9,20,56]", "size=3x3 pad=1_1x1_1", Grouped(7)},
      {"f64[1,6,6,24]", "f64[3,3,12,8]", "f64[1,6,6,8]", "size=3x3 pad=1_1x1_1", Grouped(2)},
      {"s32[1,8,9,24]", "s32[3,3,12,16]", "s32[1,8,9,16]", "size=3x3 pad=1_1x1_1", Grouped(2)},
  };
  DeviceSpec wide = Runner().spec(), narrow = Runner().spec();
  wide.vector_bytes = 64;
  narrow.vector_bytes = 32;
  for (const Case& c : cases) {
    EXPECT_EQ(KernelOf(c, wide), "") << c.input;  // neither loops nor tiles of a GPU
    for (const bool fused : {false, true}) ExpectConvolution(c, fused, wide);
    ExpectConvolution(c, true, narrow);
  }
}

TEST(Convolution, GroupsOnGpus) {
  DeviceSpec fragments = GpuSpec();
  fragments.matrix_fragments = "plain";
  fragments.has_s8_fragments = true;
  fragments.local_memory_bytes = 48 << 10;
  DeviceSpec poor = GpuSpec();
  poor.local_memory_bytes = 4 << 10;
  poor.max_work_group_size = 64;
  for (size_t i = 0; i < GroupedCases().size(); ++i) {
    const Case& c = GroupedCases()[i];
    EXPECT_EQ(KernelOf(c, GpuSpec()), "tiles") << c.input;
    EXPECT_EQ(KernelOf(c, fragments), c.input[0] == 'b' ? "fragments" : "tiles") << c.input;
    for (const bool fused : {false, true}) ExpectConvolution(c, fused, GpuSpec());
    ExpectConvolution(c, i % 2 == 0, c.input[0] == 'b' ? fragments : poor);
  }
  ExpectConvolution({"s8[1,9,9,32]", "s8[3,3,16,32]", "s32[1,9,9,32]", "size=3x3 pad=1_1x1_1", Grouped(2)}, true,
                    fragments);
}

// Where most of a tile would be empty, and where each channel has a window of its own.
TEST(Convolution, SmallGroupsOnGpusAreLoops) {
  const auto kernel_of = [](const std::string& type, int64_t channels, int64_t features, int64_t window,
                            const DeviceSpec& spec) {
    constexpr int64_t kGroups = 32;
    return KernelOf({fmt::format("{}[1,32,32,{}]", type, kGroups * channels),
                     fmt::format("{0}[{1},{1},{2},{3}]", type, window, channels, kGroups * features),
                     fmt::format("{}[1,32,32,{}]", type, kGroups * features),
                     fmt::format("size={0}x{0} pad={1}_{1}x{1}_{1}", window, window / 2), Grouped(kGroups)},
                    spec);
  };
  DeviceSpec fragments = GpuSpec();
  fragments.matrix_fragments = "plain";
  fragments.local_memory_bytes = 48 << 10;
  EXPECT_EQ(kernel_of("f32", 8, 8, 3, GpuSpec()), "tiles");
  EXPECT_EQ(kernel_of("f32", 4, 4, 3, GpuSpec()), "loops");
  EXPECT_EQ(kernel_of("f32", 16, 8, 1, GpuSpec()), "tiles");
  EXPECT_EQ(kernel_of("f32", 4, 8, 1, GpuSpec()), "loops");
  EXPECT_EQ(kernel_of("f32", 1, 8, 3, GpuSpec()), "loops");
  EXPECT_EQ(kernel_of("bf16", 4, 4, 3, fragments), "fragments");
  EXPECT_EQ(kernel_of("bf16", 2, 2, 3, fragments), "loops");
  // A gradient of weights: channels are images.
  const std::string labels = Grouped(32);
  const Case gradient{"f32[1,42,42,64]", "f32[40,40,2,64]", "f32[1,3,3,64]", "size=40x40", labels};
  EXPECT_EQ(KernelOf(gradient, GpuSpec()), "tiles");
  ExpectConvolution(gradient, true, GpuSpec());
  EXPECT_EQ(KernelOf({"f32[1,42,42,64]", "f32[40,40,2,32]", "f32[1,3,3,32]", "size=40x40", labels}, GpuSpec()),
            "loops");
}

TEST(Convolution, FormsWithoutAKernelAreLeftToTheGenericEmitter) {
  const CompileOptions options;
  const auto module = hlo::ParseModule(R"(HloModule m
ENTRY main {
  x = f32[2,3,8,8] parameter(0)
  w = f32[4,3,3,3] parameter(1)
  ROOT y = f32[2,4,6,6] convolution(x, w), window={size=3x3}, dim_labels=bf01_oi01->bf01
})");
  EXPECT_FALSE(EmitConvolution(*module->entry()->root(), {-1}, {Runner().spec(), options}).has_value());
  EXPECT_EQ(ConvolutionScratchBytes(*module->entry()->root(), {Runner().spec(), options}), 0);
}

}  // namespace
}  // namespace hlorun::opencl
