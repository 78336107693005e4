// What the files of factor rules share.
#pragma once

#include <algorithm>
#include <vector>

#include "passes/spmd/factor_rule.h"

namespace hlorun::passes::spmd {

// A rule under construction: all dimensions start whole.
class RuleBuilder {
 public:
  explicit RuleBuilder(const hlo::Instruction& instruction) : op(instruction) {
    for (const hlo::Instruction* operand : instruction.operands()) {
      rule.operands.emplace_back(static_cast<size_t>(operand->shape().rank()));
    }
    for (const hlo::Shape& leaf : hlo::FlattenShape(instruction.shape())) {
      rule.results.emplace_back(static_cast<size_t>(leaf.rank()));
    }
  }

  int Add(int64_t size, FactorKind kind = FactorKind::kParallel) {
    rule.factors.push_back({size, kind});
    return static_cast<int>(rule.factors.size()) - 1;
  }
  void Operand(int64_t i, int64_t d, int factor) {
    rule.operands[static_cast<size_t>(i)][static_cast<size_t>(d)].push_back(factor);
  }
  void Result(int64_t leaf, int64_t d, int factor) {
    rule.results[static_cast<size_t>(leaf)][static_cast<size_t>(d)].push_back(factor);
  }
  void AllResults(int64_t d, int factor) {
    for (size_t leaf = 0; leaf < rule.results.size(); ++leaf) Result(static_cast<int64_t>(leaf), d, factor);
  }
  // Dimension d of the operand is dimension `to` of the result.
  void Same(int64_t operand, int64_t d, int64_t to, FactorKind kind = FactorKind::kParallel) {
    const int factor = Add(op.operand(operand)->shape().dimension(d), kind);
    Operand(operand, d, factor);
    AllResults(to, factor);
  }

  const hlo::Instruction& op;
  FactorRule rule;
};

inline bool Has(const std::vector<int64_t>& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// contraction_rules.cc
void DotRule(RuleBuilder& r);
void ConvolutionRule(RuleBuilder& r);
void ReduceRule(RuleBuilder& r);
void ReduceWindowRule(RuleBuilder& r);
void SelectAndScatterRule(RuleBuilder& r);
void CholeskyRule(RuleBuilder& r);
void TriangularSolveRule(RuleBuilder& r);
void FftRule(RuleBuilder& r);
// movement_rules.cc
void BroadcastRule(RuleBuilder& r);
void TransposeRule(RuleBuilder& r);
void ReshapeRule(RuleBuilder& r);
void PadRule(RuleBuilder& r);
void SliceRule(RuleBuilder& r);
void ConcatenateRule(RuleBuilder& r);
void ReverseRule(RuleBuilder& r);
void SortRule(RuleBuilder& r);
void TopKRule(RuleBuilder& r);
void CollectiveRule(RuleBuilder& r);
// indexing_rules.cc
void DynamicSliceRule(RuleBuilder& r);
void DynamicUpdateSliceRule(RuleBuilder& r);
void GatherRule(RuleBuilder& r);
void ScatterRule(RuleBuilder& r);

}  // namespace hlorun::passes::spmd
