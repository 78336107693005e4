// Sizes x padding: the lowered program on padded arrays against the same program at static sizes on arrays without
// padding.
#include "passes/dynamic/lower.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "hlo/error.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/evaluator/leaves.h"
#include "hlo/evaluator/strided_copy.h"
#include "hlo/verifier.h"
#include "passes/dynamic/signature.h"
#include "passes/generic_context.h"
#include "tests/passes/dynamic/sized_cases.h"
#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

using hlo::Literal;
using testing_support::SizedCase;

enum class Padding { kNan, kRandom };

Literal Filled(const hlo::Shape& shape, Padding padding, std::mt19937_64& random) {
  Literal literal(shape.WithoutLayout());
  auto* bytes = reinterpret_cast<unsigned char*>(literal.mutable_data());
  for (int64_t i = 0; i < literal.ByteSize(); ++i) {
    bytes[i] = padding == Padding::kNan ? 0xFF : static_cast<unsigned char>(random());
  }
  return literal;
}

Literal Padded(const Literal& small, const hlo::Shape& bound, Padding padding, std::mt19937_64& random) {
  Literal large = Filled(bound, padding, random);
  hlo::CopyStrided(small.data(), {0, small.shape().Strides()}, large.mutable_data(), {0, large.shape().Strides()},
                   small.shape().dimensions(), hlo::BytesOf(small.element_type()));
  return large;
}

// Runs the lowered module on arguments of these sizes, as the driver does.
std::vector<Literal> RunPadded(const hlo::Module& lowered, const std::vector<Literal>& arguments, Padding padding,
                               uint64_t seed) {
  std::mt19937_64 random(seed);
  const SizeSignature signature = SignatureOf(lowered);
  std::vector<Literal> padded;
  for (size_t i = 0; i < arguments.size(); ++i) {
    padded.push_back(
        Padded(arguments[i], lowered.entry()->parameter(static_cast<int64_t>(i))->shape(), padding, random));
  }
  for (const DimensionOfLeaf& d : signature.parameters) {
    padded.push_back(
        Literal::Scalar(hlo::ElementType::kS32, arguments[static_cast<size_t>(d.leaf)].shape().dimension(d.dimension)));
  }
  std::vector<Literal> leaves = hlo::FlattenLiteral(hlo::Evaluate(lowered, padded));
  const size_t arrays = leaves.size() - signature.results.size();
  std::vector<Literal> results;
  for (size_t leaf = 0; leaf < arrays; ++leaf) {
    hlo::Dims dimensions = leaves[leaf].shape().dimensions();
    for (size_t i = 0; i < signature.results.size(); ++i) {
      const DimensionOfLeaf& d = signature.results[i];
      if (d.leaf == static_cast<int64_t>(leaf))
        dimensions[static_cast<size_t>(d.dimension)] = leaves[arrays + i].GetInt(0);
    }
    Literal result(hlo::Shape(leaves[leaf].element_type(), dimensions));
    hlo::CopyStrided(leaves[leaf].data(), {0, leaves[leaf].shape().Strides()}, result.mutable_data(),
                     {0, result.shape().Strides()}, dimensions, hlo::BytesOf(result.element_type()));
    results.push_back(std::move(result));
  }
  return results;
}

class SizesTest : public ::testing::TestWithParam<SizedCase> {};

TEST_P(SizesTest, EqualTheStaticProgramWhateverThePaddingHolds) {
  const SizedCase& sized = GetParam();
  LowerDynamicDimensions pass;
  const auto lowered = RunPass(testing_support::AtSizes(sized.text, sized.bounds, true), pass);
  hlo::VerifyModule(*lowered);
  for (const auto& computation : lowered->computations()) {
    for (const auto& instruction : computation->instructions())
      ASSERT_TRUE(instruction->shape().IsStatic()) << instruction->ToString();
  }
  uint64_t seed = 1;
  for (const auto& sizes : testing_support::AllSizes(sized, 60)) {
    const auto oracle = Parse(testing_support::AtSizes(sized.text, sizes, false));
    std::string at;
    for (const auto& [name, size] : sizes) at += name + "=" + std::to_string(size) + " ";
    const std::vector<Literal> arguments = RandomArguments(*oracle, Inputs::kMild, seed);
    const std::vector<Literal> expected = hlo::FlattenLiteral(hlo::Evaluate(*oracle, arguments));
    for (const Padding padding : {Padding::kNan, Padding::kRandom}) {
      const std::vector<Literal> actual = RunPadded(*lowered, arguments, padding, seed++);
      ASSERT_EQ(actual.size(), expected.size());
      for (size_t i = 0; i < actual.size(); ++i) {
        ASSERT_EQ(actual[i].shape().ToString(false), expected[i].shape().ToString(false)) << at;
        ASSERT_EQ(Difference(expected[i], actual[i], sized.exact ? kBitwise : kRounding), "") << at;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SizesTest, ::testing::ValuesIn(testing_support::SizedCases()),
                         [](const auto& info) { return info.param.name; });

TEST(LowerDynamicDimensions, LeavesStaticModulesAlone) {
  LowerDynamicDimensions pass;
  const auto module = Parse("HloModule m\nENTRY e { x = f32[4] parameter(0)  ROOT y = f32[4] add(x, x) }\n");
  GenericContext context;
  EXPECT_FALSE(pass.Run(*module, context));
}

TEST(LowerDynamicDimensions, StartsMayBeOneArray) {
  LowerDynamicDimensions pass;
  const auto module = RunPass(
      "HloModule m\nENTRY e { x = f32[4,<=8] parameter(0)  s = s32[2] parameter(1)\n"
      "  ROOT y = f32[4,2] dynamic-slice(x, s), dynamic_slice_sizes={4,2} }\n",
      pass);
  EXPECT_EQ(Count(*module, hlo::Opcode::kDynamicSlice), 1);
}

TEST(LowerDynamicDimensions, SizesThatMeetMustBeEqual) {
  LowerDynamicDimensions pass;
  const auto module = RunPass(
      "HloModule m\nENTRY e { x = f32[<=4] parameter(0)  y = f32[<=4] parameter(1)  ROOT z = f32[<=4] add(x, y) }\n",
      pass);
  const SizeSignature signature = SignatureOf(*module);
  ASSERT_EQ(signature.equal.size(), 1u);
  EXPECT_EQ(signature.parameters.size(), 2u);
  EXPECT_EQ(signature.results.size(), 1u);
}

TEST(LowerDynamicDimensions, SaysWhichReshapeItCannotTell) {
  LowerDynamicDimensions pass;
  EXPECT_THROW(RunPass("HloModule m\nENTRY e { x = f32[<=12] parameter(0)  ROOT y = f32[<=3,<=4] reshape(x) }\n", pass),
               Error);
}

}  // namespace
}  // namespace hlorun::passes
