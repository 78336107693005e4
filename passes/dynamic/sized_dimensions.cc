#include "passes/dynamic/sized_dimensions.h"

#include <algorithm>

#include "passes/memory/dataflow.h"
#include "passes/spmd/factor_rule.h"
#include "passes/spmd/factor_rule_builder.h"

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Opcode;
using spmd::FactorRule;

namespace {

std::vector<std::vector<int>> AllFixed(const hlo::Shape& shape) {
  std::vector<std::vector<int>> leaves;
  for (const hlo::Shape& leaf : hlo::FlattenShape(shape)) {
    leaves.emplace_back(static_cast<size_t>(leaf.IsArray() ? leaf.rank() : 0), SizedDimensions::kFixed);
  }
  return leaves;
}

void Include(std::vector<std::vector<int>>& all, const std::vector<std::vector<int>>& more) {
  for (size_t leaf = 0; leaf < all.size(); ++leaf) {
    for (size_t d = 0; d < all[leaf].size(); ++d) all[leaf][d] = std::max(all[leaf][d], more[leaf][d]);
  }
}

// Ops whose results have the dimensions of their first operand, also along those that cannot be cut.
bool KeepsDimensions(const Instruction& op) {
  constexpr Opcode kKeeping[] = {Opcode::kDynamicUpdateSlice, Opcode::kReduceWindow, Opcode::kReverse, Opcode::kScatter,
                                 Opcode::kSort};
  if (std::find(std::begin(kKeeping), std::end(kKeeping), op.opcode()) == std::end(kKeeping)) return false;
  return hlo::FlattenShape(op.shape())[0].SameDimensions(op.operand(0)->shape());
}

// A bitcast between arrays of as many elements is a reshape.
FactorRule RuleOf(const Instruction& op) {
  if (!op.Is(Opcode::kBitcast)) return spmd::FactorRuleOf(op);
  spmd::RuleBuilder builder(op);
  if (op.shape().ElementCount() == op.operand(0)->shape().ElementCount()) spmd::ReshapeRule(builder);
  return std::move(builder.rule);
}

}  // namespace

SizedDimensions::SizedDimensions(const hlo::Module& module, const SizeSignature& signature) {
  std::vector<Leaves> arguments;
  int64_t first = 0;
  for (const Instruction* parameter : module.entry()->parameters()) {
    Leaves leaves = AllFixed(parameter->shape());
    for (size_t i = 0; i < signature.parameters.size(); ++i) {
      const int64_t leaf = signature.parameters[i].leaf - first;
      if (leaf < 0 || leaf >= static_cast<int64_t>(leaves.size())) continue;
      leaves[static_cast<size_t>(leaf)][static_cast<size_t>(signature.parameters[i].dimension)] = static_cast<int>(i);
    }
    first += static_cast<int64_t>(leaves.size());
    arguments.push_back(std::move(leaves));
  }
  Walk(*module.entry(), arguments);
}

int SizedDimensions::OriginOf(const Instruction* instruction, int64_t leaf, int64_t d) const {
  const auto found = leaves_.find(instruction);
  return found == leaves_.end() ? kFixed : found->second[static_cast<size_t>(leaf)][static_cast<size_t>(d)];
}

SizedDimensions::Leaves SizedDimensions::Walk(const hlo::Computation& computation, std::span<const Leaves> arguments) {
  for (const Instruction* op : computation.PostOrder()) {
    leaves_[op] = op->Is(Opcode::kParameter) ? arguments[static_cast<size_t>(op->parameter_number())] : Transfer(*op);
  }
  return Of(computation.root());
}

SizedDimensions::Leaves SizedDimensions::Transfer(const Instruction& op) {
  switch (op.opcode()) {
    case Opcode::kTuple: {
      Leaves leaves;
      for (const Instruction* operand : op.operands())
        leaves.insert(leaves.end(), Of(operand).begin(), Of(operand).end());
      return leaves;
    }
    case Opcode::kGetTupleElement: {
      const auto first = Of(op.operand(0)).begin() + FirstLeafOf(op.operand(0)->shape(), op.tuple_index());
      return Leaves(first, first + hlo::LeafCount(op.shape()));
    }
    case Opcode::kWhile: {
      // What the body makes vary does so in its next iteration: until there is nothing new.
      Leaves carried = Of(op.operand(0)), before;
      do {
        before = carried;
        Walk(*op.while_condition(), {&carried, 1});
        Include(carried, Walk(*op.while_body(), {&carried, 1}));
      } while (carried != before);
      return carried;
    }
    case Opcode::kConditional: {
      Leaves joined = AllFixed(op.shape());
      for (size_t i = 0; i < op.called_computations().size(); ++i) {
        const auto branch = static_cast<int64_t>(i);
        const Leaves argument = Of(op.operand(branch + 1));
        Include(joined, Walk(*op.called(branch), {&argument, 1}));
      }
      return joined;
    }
    case Opcode::kCall:
    case Opcode::kFusion: {
      std::vector<Leaves> arguments;
      for (const Instruction* operand : op.operands()) arguments.push_back(Of(operand));
      return Walk(*op.called(), arguments);
    }
    default: return ThroughFactors(op);
  }
}

SizedDimensions::Leaves SizedDimensions::ThroughFactors(const Instruction& op) const {
  Leaves result = AllFixed(op.shape());
  if (KeepsDimensions(op)) {
    for (Dimensions& leaf : result) leaf = Of(op.operand(0))[0];
    return result;
  }
  const auto is_array = [](const Instruction* operand) { return operand->shape().IsArray(); };
  if (!std::all_of(op.operands().begin(), op.operands().end(), is_array)) return result;
  const FactorRule rule = RuleOf(op);
  if (!rule.is_known) return result;
  // A dimension varies with its major factor.
  std::vector<int> origin(rule.factors.size(), kFixed);
  for (size_t i = 0; i < rule.operands.size(); ++i) {
    const Dimensions& dimensions = Of(op.operand(static_cast<int64_t>(i)))[0];
    for (size_t d = 0; d < rule.operands[i].size(); ++d) {
      if (dimensions[d] == kFixed || rule.operands[i][d].empty()) continue;
      int& here = origin[static_cast<size_t>(rule.operands[i][d][0])];
      here = std::max(here, dimensions[d]);
    }
  }
  for (size_t leaf = 0; leaf < rule.results.size(); ++leaf) {
    for (size_t d = 0; d < rule.results[leaf].size(); ++d) {
      if (!rule.results[leaf][d].empty()) result[leaf][d] = origin[static_cast<size_t>(rule.results[leaf][d][0])];
    }
  }
  return result;
}

}  // namespace hlorun::passes
