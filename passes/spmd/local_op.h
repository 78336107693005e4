// LocalOp: one op of the per-device program under construction, and what single opcodes do to it beyond smaller shapes.
#pragma once

#include "passes/spmd/assignment.h"
#include "passes/spmd/local_builder.h"

namespace hlorun::passes::spmd {

struct LocalOp {
  const hlo::Instruction& original;
  const FactorRule& rule;
  const FactorAxes& axes;
  LocalBuilder& build;
  std::vector<hlo::Instruction*> operands;  // of this device, cut as `axes` say
  hlo::Attributes attributes;
  std::vector<hlo::Shape> shapes;    // of this device's results, one a leaf
  hlo::Instruction* done = nullptr;  // set when the op was emitted in another form

  // The axes and the only factor of a dimension that has one; empty otherwise.
  const AxisList& AxesOf(const FactorRule::Dimension& dimension) const;
  const AxisList& OperandAxes(int64_t operand, int64_t d) const;
  const AxisList& ResultAxes(int64_t d) const;
  FactorKind KindOf(const FactorRule::Dimension& dimension) const;  // of its first factor; kBlocked when it has none
  const hlo::Shape& WholeOperand(int64_t i) const { return original.operand(i)->shape(); }
  hlo::Instruction*& operand(int64_t i) { return operands[static_cast<size_t>(i)]; }
};

// Fetches neighbours' elements, masks padding, offsets indices ... until the plain op on `operands` gives this device's
// part (partial along reduced and selected factors).
void AdaptLocalOp(LocalOp& op);

// By file. window_ops.cc:
void AdaptPad(LocalOp& op);
void AdaptSlice(LocalOp& op);
void AdaptReverse(LocalOp& op);
void AdaptConcatenate(LocalOp& op);
void AdaptReduceWindow(LocalOp& op);
void AdaptConvolution(LocalOp& op);
// indexing_ops.cc:
void AdaptDynamicSlice(LocalOp& op);
void AdaptDynamicUpdateSlice(LocalOp& op);
void AdaptGather(LocalOp& op);
void AdaptScatter(LocalOp& op);
// reduction_ops.cc:
void AdaptDot(LocalOp& op);
void AdaptReduce(LocalOp& op);
void AdaptIota(LocalOp& op);
void AdaptCompare(LocalOp& op);
// Whether init combined with itself is init: then every part may begin with it.
bool CountsOnce(hlo::Opcode reducer, const hlo::Instruction& init);
// Padding of operand i along reduced factors becomes `fill`.
void MaskReduced(LocalOp& op, int64_t i, hlo::Instruction* fill);

}  // namespace hlorun::passes::spmd
