// Dynamic dimensions that are cut: the padded parts of every device against the same program at static sizes, whole.
#include <gtest/gtest.h>

#include "hlo/evaluator/evaluator.h"
#include "hlo/evaluator/leaves.h"
#include "hlo/evaluator/strided_copy.h"
#include "hlo/shards.h"
#include "hlo/text/printer.h"
#include "hlo/verifier.h"
#include "passes/dynamic/signature.h"
#include "passes/generic_context.h"
#include "passes/memory/flatten_control.h"
#include "passes/simplify/inline.h"
#include "passes/spmd/spmd.h"
#include "tests/passes/dynamic/sized_cases.h"
#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

using hlo::Literal;
using testing_support::SizedCase;

// Cut along dimension `d`, where it is one of the array.
hlo::Sharding Cut(const hlo::Shape& shape, int64_t d, int64_t partitions) {
  hlo::Sharding sharding;
  if (d >= shape.rank()) return sharding;
  sharding.kind = hlo::Sharding::Kind::kTiled;
  sharding.tile_dimensions.assign(static_cast<size_t>(shape.rank()), 1);
  sharding.tile_dimensions[static_cast<size_t>(d)] = partitions;
  sharding.iota_reshape_dims = {partitions};
  return sharding;
}

std::vector<hlo::Sharding> LeafShardings(const hlo::Instruction& instruction) {
  if (instruction.sharding->kind == hlo::Sharding::Kind::kTuple) return instruction.sharding->elements;
  return {*instruction.sharding};
}

// One device's argument: its piece of the bound, what lies beyond the sizes is NaNs and large numbers.
Literal Part(const Literal& whole, const hlo::Shape& bound, const hlo::Sharding& sharding, int64_t device) {
  const Literal small = hlo::CutBoundedShard(whole, bound, sharding, device);
  Literal part(hlo::Shape(whole.element_type(), hlo::ShardShape(bound, sharding).dimensions()));
  const bool is_pred = whole.element_type() == hlo::ElementType::kPred;
  std::fill_n(part.mutable_data(), part.ByteSize(), is_pred ? std::byte{1} : std::byte{0xFF});
  hlo::CopyStrided(small.data(), {0, small.shape().Strides()}, part.mutable_data(), {0, part.shape().Strides()},
                   small.shape().dimensions(), hlo::BytesOf(whole.element_type()));
  return part;
}

std::unique_ptr<hlo::Module> Partitioned(const std::string& text, int64_t d, int64_t partitions) {
  std::unique_ptr<hlo::Module> module = Parse(text);
  for (hlo::Instruction* parameter : module->entry()->parameters())
    parameter->sharding = Cut(parameter->shape(), d, partitions);
  CompileOptions options;
  options.num_partitions = partitions;
  GenericContext context(options);
  InlineCalls().Run(*module, context);
  FlattenControl().Run(*module, context);
  LowerSizesToCut().Run(*module, context);
  hlo::VerifyModule(*module);
  PropagateShardings().Run(*module, context);
  PartitionModule().Run(*module, context);
  hlo::VerifyModule(*module);
  return module;
}

// Runs all devices, as the driver does, and puts the parts of each result together.
std::vector<Literal> RunParts(const hlo::Module& parts, const std::vector<hlo::Shape>& bounds,
                              const std::vector<Literal>& arguments, const std::vector<Literal>& expected) {
  const SizeSignature signature = SignatureOf(parts);
  std::vector<std::vector<Literal>> of_device(static_cast<size_t>(parts.num_partitions));
  for (size_t device = 0; device < of_device.size(); ++device) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      const hlo::Sharding& sharding = *parts.entry()->parameter(static_cast<int64_t>(i))->sharding;
      of_device[device].push_back(Part(arguments[i], bounds[i], sharding, static_cast<int64_t>(device)));
    }
    for (const DimensionOfLeaf& d : signature.parameters) {
      const int64_t size = arguments[static_cast<size_t>(d.leaf)].shape().dimension(d.dimension);
      of_device[device].push_back(Literal::Scalar(hlo::ElementType::kS32, size));
    }
  }
  std::vector<std::vector<Literal>> results;
  for (const Literal& result : hlo::EvaluateSpmd(parts, of_device)) results.push_back(hlo::FlattenLiteral(result));
  const std::vector<hlo::Sharding> shardings = LeafShardings(*parts.entry()->root());
  const size_t arrays = results[0].size() - signature.results.size() - signature.whole_results.size();
  EXPECT_EQ(arrays, expected.size());
  std::vector<Literal> joined;
  for (size_t leaf = 0; leaf < arrays; ++leaf) {
    // The bound: what the parts come from, padding of the last one aside.
    hlo::Dims bound = results[0][leaf].shape().dimensions(), actual = expected[leaf].shape().dimensions();
    for (size_t d = 0; d < bound.size(); ++d) {
      if (shardings[leaf].kind == hlo::Sharding::Kind::kTiled) bound[d] *= shardings[leaf].tile_dimensions[d];
    }
    const auto is_this = [&](const DimensionOfLeaf& d) { return d.leaf == static_cast<int64_t>(leaf); };
    const size_t whole_sizes = arrays + signature.results.size();
    for (size_t i = 0; i < signature.results.size(); ++i) {
      const DimensionOfLeaf& d = signature.results[i];
      if (is_this(d)) actual[static_cast<size_t>(d.dimension)] = results[0][arrays + i].GetInt(0);
    }
    for (size_t i = 0; i < signature.whole_results.size(); ++i) {
      const DimensionOfLeaf& d = signature.whole_results[i];
      if (is_this(d)) actual[static_cast<size_t>(d.dimension)] = results[0][whole_sizes + i].GetInt(0);
    }
    const hlo::Shape whole(expected[leaf].element_type(), bound);
    std::vector<Literal> pieces;
    for (size_t device = 0; device < results.size(); ++device) {
      pieces.push_back(results[device][leaf]);
      const hlo::Dims mine = hlo::PartDimensions(actual, whole, shardings[leaf], static_cast<int64_t>(device));
      for (size_t i = 0; i < signature.results.size(); ++i) {
        const DimensionOfLeaf& d = signature.results[i];
        if (is_this(d)) {
          EXPECT_EQ(results[device][arrays + i].GetInt(0), mine[static_cast<size_t>(d.dimension)]);
        }
      }
    }
    joined.push_back(hlo::AtDimensions(hlo::JoinShards(pieces, shardings[leaf], whole), actual));
  }
  return joined;
}

class SizesInParts : public ::testing::TestWithParam<SizedCase> {};

TEST_P(SizesInParts, EqualTheStaticProgram) {
  const SizedCase& sized = GetParam();
  const std::string bounded = testing_support::AtSizes(sized.text, sized.bounds, true);
  std::vector<hlo::Shape> bounds;
  const auto whole = Parse(bounded);
  for (const hlo::Instruction* parameter : whole->entry()->parameters()) bounds.push_back(parameter->shape());
  for (const int64_t d : {0, 1}) {
    for (const int64_t partitions : {2, 3}) {
      const auto parts = Partitioned(bounded, d, partitions);
      if (parts->num_partitions != partitions) continue;  // nothing has this dimension
      uint64_t seed = 1;
      for (const auto& sizes : testing_support::AllSizes(sized, 12)) {
        std::string at = "dimension " + std::to_string(d) + " on " + std::to_string(partitions) + " devices, ";
        for (const auto& [name, size] : sizes) at += name + "=" + std::to_string(size) + " ";
        const auto oracle = Parse(testing_support::AtSizes(sized.text, sizes, false));
        const std::vector<Literal> arguments = RandomArguments(*oracle, Inputs::kMild, seed++);
        const std::vector<Literal> expected = hlo::FlattenLiteral(hlo::Evaluate(*oracle, arguments));
        const std::vector<Literal> actual = RunParts(*parts, bounds, arguments, expected);
        for (size_t i = 0; i < actual.size(); ++i) {
          ASSERT_EQ(actual[i].shape().ToString(false), expected[i].shape().ToString(false))
              << at << hlo::PrintModule(*parts);
          // Parts of a sum are added in another order.
          ASSERT_EQ(Difference(expected[i], actual[i], kRounding), "") << at << hlo::PrintModule(*parts);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SizesInParts, ::testing::ValuesIn(testing_support::SizedCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hlorun::passes
