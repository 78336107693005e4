#include "passes/spmd/local_op.h"

#include <algorithm>

namespace hlorun::passes::spmd {
namespace {

using hlo::Opcode;

struct Row {
  Opcode opcode;
  void (*adapt)(LocalOp&);
};

// Other ops need smaller shapes only.
constexpr Row kRows[] = {
    {Opcode::kCompare, AdaptCompare},
    {Opcode::kConcatenate, AdaptConcatenate},
    {Opcode::kConvolution, AdaptConvolution},
    {Opcode::kDot, AdaptDot},
    {Opcode::kDynamicSlice, AdaptDynamicSlice},
    {Opcode::kDynamicUpdateSlice, AdaptDynamicUpdateSlice},
    {Opcode::kGather, AdaptGather},
    {Opcode::kIota, AdaptIota},
    {Opcode::kPad, AdaptPad},
    {Opcode::kReduce, AdaptReduce},
    {Opcode::kReduceWindow, AdaptReduceWindow},
    {Opcode::kReverse, AdaptReverse},
    {Opcode::kScatter, AdaptScatter},
    {Opcode::kSlice, AdaptSlice},
};

const AxisList kNoAxes;

}  // namespace

const AxisList& LocalOp::AxesOf(const FactorRule::Dimension& dimension) const {
  return dimension.size() == 1 ? axes[static_cast<size_t>(dimension[0])] : kNoAxes;
}

const AxisList& LocalOp::OperandAxes(int64_t i, int64_t d) const {
  return AxesOf(rule.operands[static_cast<size_t>(i)][static_cast<size_t>(d)]);
}

const AxisList& LocalOp::ResultAxes(int64_t d) const { return AxesOf(rule.results[0][static_cast<size_t>(d)]); }

FactorKind LocalOp::KindOf(const FactorRule::Dimension& dimension) const {
  return dimension.empty() ? FactorKind::kBlocked : rule.factors[static_cast<size_t>(dimension[0])].kind;
}

void AdaptLocalOp(LocalOp& op) {
  const auto* row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return op.original.Is(r.opcode); });
  if (row != std::end(kRows)) row->adapt(op);
}

}  // namespace hlorun::passes::spmd
