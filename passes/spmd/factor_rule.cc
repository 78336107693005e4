#include "passes/spmd/factor_rule.h"

#include "hlo/builder.h"
#include "passes/spmd/annotations.h"
#include "passes/spmd/factor_rule_builder.h"

namespace hlorun::passes::spmd {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Every operand of the result's rank has the result's dimensions; scalars (of clamp and select) have none.
void Elementwise(RuleBuilder& r) {
  if (r.rule.results.empty()) return;
  const int64_t rank = static_cast<int64_t>(r.rule.results[0].size());
  const hlo::Shape shape = hlo::FlattenShape(r.op.shape())[0];
  for (int64_t d = 0; d < rank; ++d) {
    const int factor = r.Add(shape.dimension(d));
    for (int64_t i = 0; i < r.op.operand_count(); ++i) {
      if (r.op.operand(i)->shape().rank() == rank) r.Operand(i, d, factor);
    }
    r.AllResults(d, factor);
  }
}

// All dimensions but a last one that only one side has (u8[4] <-> u32).
void BitcastConvertRule(RuleBuilder& r) {
  const int64_t rank = std::min(r.op.shape().rank(), r.op.operand(0)->shape().rank());
  for (int64_t d = 0; d < rank; ++d) r.Same(0, d, d);
}

void SizedDimensionRule(RuleBuilder& r) {
  for (int64_t d = 0; d < r.op.operand(0)->shape().rank(); ++d) {
    if (d != r.op.dimensions()[0]) r.Same(0, d, d);
  }
}

void Whole(RuleBuilder&) {}

void CustomCallRule(RuleBuilder& r) {
  if (IsShardingConstraint(r.op)) return Elementwise(r);
  r.rule.is_known = false;
}

struct Row {
  Opcode opcode;
  void (*rule)(RuleBuilder&);
};

// Elementwise ops need no row. What is neither elementwise nor here has no rule.
constexpr Row kRows[] = {
    {Opcode::kAfterAll, Whole},
    {Opcode::kAllGather, CollectiveRule},
    {Opcode::kAllReduce, CollectiveRule},
    {Opcode::kAllToAll, CollectiveRule},
    {Opcode::kBitcastConvert, BitcastConvertRule},
    {Opcode::kBroadcast, BroadcastRule},
    {Opcode::kCholesky, CholeskyRule},
    {Opcode::kClamp, Elementwise},
    {Opcode::kCollectiveBroadcast, CollectiveRule},
    {Opcode::kCollectivePermute, CollectiveRule},
    {Opcode::kConcatenate, ConcatenateRule},
    {Opcode::kConstant, Elementwise},
    {Opcode::kConvolution, ConvolutionRule},
    {Opcode::kCustomCall, CustomCallRule},
    {Opcode::kDomain, Elementwise},
    {Opcode::kDot, DotRule},
    {Opcode::kDynamicSlice, DynamicSliceRule},
    {Opcode::kDynamicUpdateSlice, DynamicUpdateSliceRule},
    {Opcode::kFft, FftRule},
    {Opcode::kGather, GatherRule},
    {Opcode::kIota, Elementwise},
    {Opcode::kMap, Elementwise},
    {Opcode::kPad, PadRule},
    {Opcode::kPartitionId, Whole},
    {Opcode::kReduce, ReduceRule},
    {Opcode::kReduceScatter, CollectiveRule},
    {Opcode::kReduceWindow, ReduceWindowRule},
    {Opcode::kReplicaId, Whole},
    {Opcode::kReshape, ReshapeRule},
    {Opcode::kReverse, ReverseRule},
    {Opcode::kRng, Whole},
    {Opcode::kRngBitGenerator, Whole},
    {Opcode::kScatter, ScatterRule},
    {Opcode::kSelectAndScatter, SelectAndScatterRule},
    {Opcode::kSetDimensionSize, SizedDimensionRule},
    {Opcode::kSlice, SliceRule},
    {Opcode::kSort, SortRule},
    {Opcode::kTopK, TopKRule},
    {Opcode::kTranspose, TransposeRule},
    {Opcode::kTriangularSolve, TriangularSolveRule},
};

}  // namespace

FactorRule FactorRuleOf(const Instruction& instruction) {
  RuleBuilder builder(instruction);
  if (instruction.Has(hlo::kElementwise)) {
    Elementwise(builder);
    return std::move(builder.rule);
  }
  const auto* row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return instruction.Is(r.opcode); });
  if (row == std::end(kRows)) {
    builder.rule.is_known = false;
  } else {
    row->rule(builder);
  }
  return std::move(builder.rule);
}

std::optional<Opcode> CombinerOf(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kDot:
    case Opcode::kConvolution: return Opcode::kAdd;
    case Opcode::kDynamicSlice:
    case Opcode::kGather:
      return instruction.shape().element_type() == hlo::ElementType::kPred ? Opcode::kOr : Opcode::kAdd;
    case Opcode::kReduce:
    case Opcode::kScatter:
      return instruction.shape().IsTuple() ? std::nullopt : hlo::ReducerOpcode(*instruction.called());
    default: return std::nullopt;
  }
}

}  // namespace hlorun::passes::spmd
