// Convolutions of every kind come to the kernels' form, or become dots, and keep their value.
#include <gtest/gtest.h>

#include <span>

#include "passes/expand/convolution.h"
#include "passes/generic_context.h"
#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

struct Case {
  const char* name;
  const char* input;
  const char* kernel;
  const char* output;
  const char* attributes;
  int64_t dots;  // that are there in the end
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr Case kCases[] = {
    {"Form", "f32[2,6,6,3]", "f32[3,3,3,4]", "f32[2,6,6,4]",
     "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f", 0},
    {"InputGradient", "f32[2,6,6,3]", "f32[3,3,4,3]", "f32[2,6,6,4]",
     "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01oi->b01f", 0},
    {"InputGradientOfStride", "f32[2,3,3,3]", "f32[3,3,4,3]", "f32[2,6,6,4]",
     "window={size=3x3 pad=2_1x2_1 lhs_dilate=2x2}, dim_labels=b01f_01oi->b01f", 1},
    {"Transposed", "f32[2,3,4,3]", "f32[4,4,3,4]", "f32[2,6,8,4]",
     "window={size=4x4 pad=2_2x2_2 lhs_dilate=2x2}, dim_labels=b01f_01io->b01f", 0},
    {"TransposedOdd", "f32[1,3,4,3]", "f32[3,5,3,2]", "f32[1,7,12,2]",
     "window={size=3x5 pad=2_2x3_3 lhs_dilate=2x3}, dim_labels=b01f_01io->b01f", 1},
    {"TransposedNchw", "f32[2,3,3,4]", "f32[4,3,2,3]", "f32[2,4,4,6]",
     "window={size=2x3 pad=0_0x0_1 lhs_dilate=2x2 rhs_reversal=1x1}, dim_labels=bf01_oi01->bf01", 2},
    {"TransposedCut", "f32[2,5,3]", "f32[4,3,4]", "f32[2,6,4]",
     "window={size=4 pad=-1_1 lhs_dilate=2}, dim_labels=b0f_0io->b0f", 0},
    {"TransposedWithHoles", "f32[2,3,3,3]", "f32[2,1,3,4]", "f32[2,11,11,4]",
     "window={size=2x1 pad=1_2x1_3 lhs_dilate=4x3}, dim_labels=b01f_01io->b01f", 2},
    {"TransposedGroups", "f32[2,3,3,4]", "f32[3,3,2,6]", "f32[2,6,6,6]",
     "window={size=3x3 pad=1_2x2_1 lhs_dilate=2x2}, dim_labels=b01f_01io->b01f, feature_group_count=2", 0},
    {"TransposedWithStride", "f32[2,5,5,3]", "f32[3,3,3,4]", "f32[2,3,5,4]",
     "window={size=3x3 stride=4x2 pad=1_2x1_2 lhs_dilate=2x2}, dim_labels=b01f_01io->b01f", 0},
    {"Reversed", "f32[2,6,6,3]", "f32[3,2,3,4]", "f32[2,4,5,4]",
     "window={size=3x2 rhs_reversal=1x1}, dim_labels=b01f_01io->b01f", 0},
    {"NegativePadding", "f32[2,6,6,3]", "f32[2,2,3,4]", "f32[2,4,4,4]",
     "window={size=2x2 pad=-1_0x0_-1}, dim_labels=b01f_01io->b01f", 0},
    {"Nchw", "f32[2,3,6,6]", "f32[4,3,3,3]", "f32[2,4,6,6]",
     "window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01", 0},
    {"Depthwise", "f32[2,6,6,4]", "f32[3,3,1,4]", "f32[2,6,6,4]",
     "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=4", 0},
    {"BatchGroups", "f32[4,6,6,3]", "f32[3,3,3,4]", "f32[2,6,6,4]",
     "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, batch_group_count=2", 0},
    {"OneDimensional", "f32[2,9,3]", "f32[3,3,4]", "f32[2,5,4]",
     "window={size=3 stride=2 pad=1_1}, dim_labels=b0f_0io->b0f", 0},
    {"ThreeDimensional", "f32[1,4,5,3,2]", "f32[2,2,2,2,3]", "f32[1,3,4,2,3]",
     "window={size=2x2x2}, dim_labels=b012f_012io->b012f", 0},
    {"ThreeDimensionalStrided", "f32[2,7,5,3,2]", "f32[3,2,2,2,3]", "f32[2,4,2,2,3]",
     "window={size=3x2x2 stride=2x2x1 pad=1_1x0_0x0_0}, dim_labels=b012f_012io->b012f", 0},
    {"ThreeDimensionalDilated", "f32[2,7,5,3,2]", "f32[3,2,2,2,3]", "f32[2,4,4,3,3]",
     "window={size=3x2x2 pad=2_-1x0_0x0_1 rhs_dilate=2x1x1}, dim_labels=b012f_012io->b012f", 0},
    {"ThreeDimensionalNcdhw", "f32[2,4,5,4,3]", "f32[6,2,3,2,2]", "f32[2,6,5,3,2]",
     "window={size=3x2x2 pad=1_1x0_0x0_0}, dim_labels=bf012_oi012->bf012, feature_group_count=2", 0},
    {"ThreeDimensionalTransposed", "f32[1,3,2,2,3]", "f32[2,2,2,3,4]", "f32[1,6,4,4,4]",
     "window={size=2x2x2 pad=1_1x1_1x1_1 lhs_dilate=2x2x2}, dim_labels=b012f_012io->b012f", 8},
    {"ThreeDimensionalInTime", "f32[1,8,4,4,3]", "f32[3,1,1,3,4]", "f32[1,8,4,4,4]",
     "window={size=3x1x1 pad=1_1x0_0x0_0}, dim_labels=b012f_012io->b012f", 1},
    {"ThreeDimensionalInSpace", "f32[2,4,4,4,3]", "f32[1,3,3,3,4]", "f32[2,2,4,4,4]",
     "window={size=1x3x3 stride=2x1x1 pad=0_0x1_1x1_1}, dim_labels=b012f_012io->b012f", 0},
    {"ThreeDimensionalDepthwise", "f32[1,4,4,4,3]", "f32[3,3,3,1,3]", "f32[1,4,4,4,3]",
     "window={size=3x3x3 pad=1_1x1_1x1_1}, dim_labels=b012f_012io->b012f, feature_group_count=3", 0},
    {"FourDimensional", "f32[1,4,3,4,3,2]", "f32[2,2,2,2,2,3]", "f32[1,3,2,3,2,3]",
     "window={size=2x2x2x2}, dim_labels=b0123f_0123io->b0123f", 0},
    {"Dilated", "f32[1,9,9,2]", "f32[3,3,2,3]", "f32[1,5,5,3]",
     "window={size=3x3 rhs_dilate=2x2}, dim_labels=b01f_01io->b01f", 0},
    {"Pointwise", "f32[2,3,3,5]", "f32[1,1,5,4]", "f32[2,3,3,4]", "window={size=1x1}, dim_labels=b01f_01io->b01f", 1},
    {"PointwiseStrided", "f32[2,5,5,3]", "f32[1,1,3,4]", "f32[2,3,3,4]",
     "window={size=1x1 stride=2x2}, dim_labels=b01f_01io->b01f", 1},
    {"PointwiseDilated", "f32[2,3,3,5]", "f32[1,1,4,5]", "f32[2,6,6,4]",
     "window={size=1x1 pad=0_1x0_1 lhs_dilate=2x2}, dim_labels=b01f_01oi->b01f", 1},
    {"PointwiseNchw", "f32[2,5,3,3]", "f32[4,5,1,1]", "f32[2,4,3,3]", "window={size=1x1}, dim_labels=bf01_oi01->bf01",
     1},
    {"WeightGradient", "f32[2,8,8,40]", "f32[2,8,8,4]", "f32[3,3,40,4]",
     "window={size=8x8 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf", 9},
    {"WeightGradientOfStride", "f32[2,9,9,40]", "f32[2,4,4,4]", "f32[3,3,40,4]",
     "window={size=4x4 rhs_dilate=2x2}, dim_labels=f01b_i01o->01bf", 0},
    {"WeightGradientOfStrideLarge", "f32[2,13,13,40]", "f32[2,6,6,4]", "f32[3,3,40,4]",
     "window={size=6x6 rhs_dilate=2x2}, dim_labels=f01b_i01o->01bf", 9},
    {"WeightGradientOfFewChannels", "f32[2,8,8,3]", "f32[2,8,8,4]", "f32[3,3,3,4]",
     "window={size=8x8 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf", 1},
    {"Patches", "f32[2,9,6,3]", "f32[4,2,3,5]", "f32[2,2,3,5]",
     "window={size=4x2 stride=4x2}, dim_labels=b01f_01io->b01f", 1},
    {"PatchesNchw", "f32[2,3,8,6]", "f32[5,3,4,2]", "f32[2,5,2,3]",
     "window={size=4x2 stride=4x2}, dim_labels=bf01_oi01->bf01", 1},
    {"NoSpatialDimensions", "f32[2,3]", "f32[3,4]", "f32[2,4]", "dim_labels=bf_io->bf", 1},
};

class ConvolutionTest : public testing::TestWithParam<Case> {};

TEST_P(ConvolutionTest, KeepsItsValueInTheKernelsForm) {
  const Case& c = GetParam();
  const std::string text = fmt::format("x = {} parameter(0)\n k = {} parameter(1)\n ROOT r = {} convolution(x, k), {}",
                                       c.input, c.kernel, c.output, c.attributes);
  CanonicalizeConvolutions pass;
  RunAndCompare(text, pass, kRounding);
  const auto module = RunPass(text, pass);
  EXPECT_EQ(Count(*module, hlo::Opcode::kDot), c.dots);
  for (const hlo::Instruction* instruction : module->entry()->PostOrder()) {
    if (!instruction->Is(hlo::Opcode::kConvolution)) continue;
    EXPECT_TRUE(IsCanonicalConvolution(*instruction)) << instruction->ToString();
  }
}

class KernelsForGradients : public GenericKernelModel {
 public:
  bool SumsOverWindow(const hlo::Instruction&) const override { return true; }
};

TEST(ConvolutionOverWindow, StaysOneWhereAKernelTakesIt) {
  struct {
    const char *input, *kernel, *output, *attributes;
  } constexpr kGradients[] = {
      {"f32[2,8,8,40]", "f32[2,8,8,4]", "f32[3,3,40,4]", "window={size=8x8 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf"},
      {"f32[2,9,9,3]", "f32[2,5,5,4]", "f32[1,1,3,4]", "window={size=5x5 rhs_dilate=2x2}, dim_labels=f01b_i01o->01bf"},
      {"f32[2,5,8,9]", "f32[2,4,8,9]", "f32[4,5,3,3]", "window={size=8x9 pad=1_1x1_1}, dim_labels=fb01_io01->fb01"},
      {"f32[2,9,5]", "f32[2,7,4]", "f32[3,5,4]", "window={size=7 rhs_reversal=1}, dim_labels=f0b_i0o->0bf"},
      // Groups of the batch stay, however small the window.
      {"f32[2,5,8,9]", "f32[2,5,8,9]", "f32[5,1,3,3]",
       "window={size=8x9 pad=1_1x1_1}, dim_labels=fb01_io01->fb01, batch_group_count=5"},
      {"f32[2,1,1,6]", "f32[2,1,1,6]", "f32[3,3,1,6]",
       "window={size=1x1 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf, batch_group_count=6"},
  };
  for (const auto& c : kGradients) {
    const std::string text =
        fmt::format("x = {} parameter(0)\n k = {} parameter(1)\n ROOT r = {} convolution(x, k), {}", c.input, c.kernel,
                    c.output, c.attributes);
    CanonicalizeConvolutions pass;
    RunAndCompare(text, pass, kRounding, KernelsForGradients());
    const auto module = RunPass(text, pass, KernelsForGradients());
    EXPECT_EQ(Count(*module, hlo::Opcode::kDot), 0);
    for (const hlo::Instruction* instruction : module->entry()->PostOrder()) {
      if (!instruction->Is(hlo::Opcode::kConvolution)) continue;
      EXPECT_TRUE(IsConvolutionOverWindow(*instruction)) << instruction->ToString();
    }
    const KernelsForGradients kernels;
    GenericContext context(kernels);
    EXPECT_FALSE(pass.Run(*module, context));
  }
}

struct DotCase {
  const char *input, *kernel, *output, *attributes;
  bool becomes_dot;
};

// Each becomes one dot, or stays a convolution, and keeps its value.
void ExpectOneDotOrNone(std::span<const DotCase> cases, const KernelModel& kernels) {
  for (const DotCase& c : cases) {
    const std::string text =
        fmt::format("x = {} parameter(0)\n k = {} parameter(1)\n ROOT r = {} convolution(x, k), {}", c.input, c.kernel,
                    c.output, c.attributes);
    CanonicalizeConvolutions pass;
    RunAndCompare(text, pass, kRounding, kernels);
    const auto module = RunPass(text, pass, kernels);
    EXPECT_EQ(Count(*module, hlo::Opcode::kDot), c.becomes_dot ? 1 : 0) << text;
    EXPECT_EQ(Count(*module, hlo::Opcode::kConvolution), c.becomes_dot ? 0 : 1) << text;
  }
}

class KernelsForManyFeatures : public GenericKernelModel {
 public:
  bool WantsManyFeatures() const override { return true; }
};

TEST(SumOfTaps, IsMadeOfOneDotForFewFeatures) {
  constexpr DotCase kFew[] = {
      {"f32[2,66,63,32]", "f32[3,3,32,3]", "f32[2,66,63,3]",
       "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f", true},
      {"bf16[1,40,66,64]", "bf16[2,40,5,2]", "bf16[1,2,66,63]",
       "window={size=5x2 pad=3_5x-1_1 rhs_dilate=2x1 rhs_reversal=1x0}, dim_labels=bf01_oi01->bf01", true},
      {"f32[1,5000,16]", "f32[7,16,1]", "f32[1,5000,1]", "window={size=7 pad=3_3}, dim_labels=b0f_0io->b0f", true},
      {"f32[1,12,9,64]", "f32[3,3,64,3]", "f32[1,12,9,3]", "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
       true},
      {"f32[1,12,9,32]", "f32[3,3,32,3]", "f32[1,12,9,3]", "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
       false},
      {"f32[1,7,9,64]", "f32[3,3,64,3]", "f32[1,7,9,3]", "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
       false},
      {"f32[1,66,63,16]", "f32[3,3,16,3]", "f32[1,66,63,3]",
       "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f", false},
      {"f32[1,131,135,32]", "f32[3,3,32,2]", "f32[1,66,68,2]",
       "window={size=3x3 stride=2x2 pad=1_1x1_1}, dim_labels=b01f_01io->b01f", false},
  };
  ExpectOneDotOrNone(kFew, KernelsForManyFeatures());
}

struct Grouped {
  std::string input, kernel, output, attributes;
};

// The values stay, and `model` asks nothing more of what convolutions became.
void ExpectWhatKernelsWant(const std::vector<Grouped>& convolutions, const KernelModel& model) {
  for (const Grouped& c : convolutions) {
    const std::string text =
        fmt::format("x = {} parameter(0)\n k = {} parameter(1)\n ROOT r = {} convolution(x, k), {}", c.input, c.kernel,
                    c.output, c.attributes);
    CanonicalizeConvolutions pass;
    RunAndCompare(text, pass, kRounding, model);
    const auto module = RunPass(text, pass, model);
    for (const hlo::Instruction* instruction : module->entry()->PostOrder()) {
      if (!instruction->Is(hlo::Opcode::kConvolution)) continue;
      EXPECT_EQ(model.GroupsTogether(*instruction), 1) << instruction->ToString();
      EXPECT_EQ(model.FeaturesToAdd(*instruction), 0) << instruction->ToString();
      EXPECT_EQ(model.CopiesOfChannels(*instruction), 1) << instruction->ToString();
      EXPECT_TRUE(IsCanonicalConvolution(*instruction)) << instruction->ToString();
    }
  }
}

class PairsOfGroups : public GenericKernelModel {
 public:
  int64_t GroupsTogether(const hlo::Instruction& convolution) const override {
    return convolution.As<hlo::attr::Convolution>().feature_group_count > 3 ? 2 : 1;
  }
};

TEST(FeatureGroups, AreMergedWhereAKernelWantsThat) {
  ExpectWhatKernelsWant(
      {{"f32[2,6,6,12]", "f32[3,3,3,8]", "f32[2,6,6,8]",
        "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=4"},
       {"f32[2,12,6]", "f32[6,2,3]", "f32[2,6,4]", "window={size=3}, dim_labels=bf0_oi0->bf0, feature_group_count=6"},
       {"bf16[1,3,3,8]", "bf16[3,3,2,8]", "bf16[1,6,6,8]",
        "window={size=3x3 pad=1_2x2_1 lhs_dilate=2x2}, dim_labels=b01f_01io->b01f, feature_group_count=4"}},
      PairsOfGroups());
}

// Features in fours.
class FoursOfFeatures : public GenericKernelModel {
 public:
  int64_t FeaturesToAdd(const hlo::Instruction& convolution) const override {
    const auto& attributes = convolution.As<hlo::attr::Convolution>();
    const int64_t groups = attributes.feature_group_count;
    const int64_t features =
        convolution.operand(1)->shape().dimension(attributes.dimensions.kernel_output_feature) / groups;
    return groups == 1 ? 0 : (4 - features % 4) % 4;
  }
};

TEST(FeatureGroups, GetFeaturesWhereAKernelWantsThat) {
  ExpectWhatKernelsWant(
      {{"f32[2,6,6,9]", "f32[3,3,3,15]", "f32[2,6,6,15]",
        "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=3"},
       {"f32[2,12,6]", "f32[6,2,3]", "f32[2,6,4]", "window={size=3}, dim_labels=bf0_oi0->bf0, feature_group_count=6"},
       {"bf16[1,8,3,3]", "bf16[6,4,3,3]", "bf16[1,6,6,6]",
        "window={size=3x3 pad=1_2x2_1 lhs_dilate=2x2 rhs_reversal=1x0}, dim_labels=bf01_oi01->bf01, "
        "feature_group_count=2"},
       {"s32[1,5,5,5,6]", "s32[2,2,2,2,9]", "s32[1,4,4,4,9]",
        "window={size=2x2x2}, dim_labels=b012f_012io->b012f, feature_group_count=3"}},
      FoursOfFeatures());
}

class ChannelsOfTheirOwn : public GenericKernelModel {
 public:
  int64_t CopiesOfChannels(const hlo::Instruction& convolution) const override {
    const auto& attributes = convolution.As<hlo::attr::Convolution>();
    const hlo::Shape& weights = convolution.operand(1)->shape();
    if (weights.dimension(attributes.dimensions.kernel_input_feature) != 1) return 1;
    return weights.dimension(attributes.dimensions.kernel_output_feature) / attributes.feature_group_count;
  }
};

TEST(FeatureGroups, GetChannelsOfTheirOwnWhereAKernelWantsThat) {
  ExpectWhatKernelsWant(
      {{"f32[2,6,6,5]", "f32[3,3,1,15]", "f32[2,6,6,15]",
        "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=5"},
       {"f32[2,6,9]", "f32[12,1,3]", "f32[2,12,4]",
        "window={size=3 stride=2 rhs_reversal=1}, dim_labels=bf0_oi0->bf0, feature_group_count=6"},
       {"bf16[4,3,3,1]", "bf16[8,1,3,3]", "bf16[8,6,6,1]",
        "window={size=3x3 pad=1_2x2_1 lhs_dilate=2x2}, dim_labels=f01b_oi01->f01b, feature_group_count=4"},
       {"s32[1,5,5,5,3]", "s32[2,2,2,1,6]", "s32[1,4,4,4,6]",
        "window={size=2x2x2}, dim_labels=b012f_012io->b012f, feature_group_count=3"}},
      ChannelsOfTheirOwn());
}

INSTANTIATE_TEST_SUITE_P(All, ConvolutionTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hlorun::passes
