#include "tests/passes/spmd/partition_check.h"

#include <cmath>
#include <random>

#include "hlo/evaluator/evaluator.h"
#include "hlo/evaluator/leaves.h"
#include "hlo/shards.h"
#include "hlo/text/printer.h"
#include "hlo/verifier.h"
#include "passes/generic_context.h"
#include "passes/memory/flatten_control.h"
#include "passes/simplify/inline.h"
#include "passes/simplify/markers.h"
#include "passes/spmd/spmd.h"

namespace hlorun::passes {
namespace {

using hlo::Literal;

Literal RandomLiteral(const hlo::Shape& shape, std::mt19937_64& random) {
  if (shape.IsTuple()) {
    std::vector<Literal> elements;
    for (const hlo::Shape& element : shape.tuple_shapes()) elements.push_back(RandomLiteral(element, random));
    return Literal::Tuple(std::move(elements));
  }
  Literal literal(shape.WithoutLayout());
  const bool real = hlo::IsFloating(shape.element_type()) || hlo::IsComplex(shape.element_type());
  for (int64_t i = 0; i < literal.ElementCount(); ++i) {
    if (real) {
      literal.SetDouble(i, static_cast<double>(static_cast<int64_t>(random() % 7) - 3));
    } else if (shape.element_type() == hlo::ElementType::kPred) {
      literal.SetInt(i, static_cast<int64_t>(random() % 2));
    } else {
      literal.SetInt(i, static_cast<int64_t>(random() % 12) - (hlo::IsSigned(shape.element_type()) ? 2 : 0));
    }
  }
  return literal;
}

std::vector<hlo::Sharding> LeafShardings(const hlo::Instruction& instruction) {
  if (!instruction.sharding)
    return std::vector<hlo::Sharding>(static_cast<size_t>(hlo::LeafCount(instruction.shape())));
  if (instruction.sharding->kind == hlo::Sharding::Kind::kTuple) return instruction.sharding->elements;
  return {*instruction.sharding};
}

Literal CutTuple(const Literal& whole, const std::vector<hlo::Sharding>& shardings, size_t& next, int64_t device) {
  if (whole.shape().IsTuple()) {
    std::vector<Literal> elements;
    for (const Literal& element : whole.elements()) elements.push_back(CutTuple(element, shardings, next, device));
    return Literal::Tuple(std::move(elements));
  }
  const bool is_pred = whole.element_type() == hlo::ElementType::kPred;
  return hlo::CutShard(whole, shardings[next++], device, is_pred ? std::byte{1} : std::byte{0xFF});
}

}  // namespace

std::string ExactDifference(const Literal& expected, const Literal& actual) {
  if (!expected.shape().SameDimensions(actual.shape())) {
    return fmt::format("expected {}, got {}", expected.shape().ToString(false), actual.shape().ToString(false));
  }
  const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  for (int64_t i = 0; i < expected.ElementCount(); ++i) {
    const auto a = expected.GetComplex(i), b = actual.GetComplex(i);
    if (same(a.real(), b.real()) && same(a.imag(), b.imag())) continue;
    return fmt::format("element {} of {}: expected {}, got {}", i, expected.shape().ToString(false), a.real(),
                       b.real());
  }
  return "";
}

std::vector<Literal> WholeResults(const hlo::Module& module, const std::vector<Literal>& arguments) {
  const std::unique_ptr<hlo::Module> plain = module.Clone();
  GenericContext context;
  RemoveMarkers().Run(*plain, context);
  return hlo::FlattenLiteral(hlo::Evaluate(*plain, arguments));
}

std::vector<Literal> IntegerArguments(const hlo::Module& module, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Literal> arguments;
  for (const hlo::Instruction* parameter : module.entry()->parameters())
    arguments.push_back(RandomLiteral(parameter->shape(), random));
  return arguments;
}

std::unique_ptr<hlo::Module> Partitioned(const hlo::Module& module, int64_t partitions, std::vector<Remark>* remarks) {
  std::unique_ptr<hlo::Module> copy = module.Clone();
  CompileOptions options;
  options.num_partitions = partitions;
  GenericContext context(options);
  InlineCalls().Run(*copy, context);
  FlattenControl().Run(*copy, context);
  PropagateShardings().Run(*copy, context);
  hlo::VerifyModule(*copy);
  PartitionModule().Run(*copy, context);
  hlo::VerifyModule(*copy);
  if (remarks != nullptr) *remarks = std::move(context.remarks);
  return copy;
}

PartitionOutcome PartitionAndCompare(const hlo::Module& module, int64_t partitions, uint64_t seed) {
  PartitionOutcome outcome;
  const std::vector<Literal> arguments = IntegerArguments(module, seed);
  const std::vector<Literal> expected = WholeResults(module, arguments);
  const std::unique_ptr<hlo::Module> parts = Partitioned(module, partitions, &outcome.remarks);
  outcome.text = hlo::PrintModule(*parts);
  if (parts->num_partitions != partitions) {
    outcome.difference = fmt::format("the module is for {} partitions", parts->num_partitions);
    return outcome;
  }
  std::vector<std::vector<Literal>> of_device(static_cast<size_t>(partitions));
  for (int64_t device_number = 0; device_number < partitions; ++device_number) {
    for (const hlo::Instruction* parameter : parts->entry()->parameters()) {
      size_t next = 0;
      of_device[static_cast<size_t>(device_number)].push_back(
          CutTuple(arguments[static_cast<size_t>(parameter->parameter_number())], LeafShardings(*parameter), next,
                   device_number));
    }
  }
  std::vector<std::vector<Literal>> results;  // by device, by leaf
  for (const Literal& result : hlo::EvaluateSpmd(*parts, of_device)) results.push_back(hlo::FlattenLiteral(result));
  const std::vector<hlo::Sharding> shardings = LeafShardings(*parts->entry()->root());
  for (size_t leaf = 0; leaf < expected.size(); ++leaf) {
    std::vector<Literal> pieces;
    for (const auto& mine : results) pieces.push_back(mine[leaf]);
    const Literal whole = hlo::JoinShards(pieces, shardings[leaf], expected[leaf].shape());
    const std::string difference = ExactDifference(expected[leaf], whole);
    if (!difference.empty()) {
      outcome.difference = fmt::format("result {}: {}", leaf, difference);
      return outcome;
    }
  }
  return outcome;
}

}  // namespace hlorun::passes
