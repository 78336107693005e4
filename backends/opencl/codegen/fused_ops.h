// One rule an opcode: the element of its result at an index, from elements of its operands at mapped indices.
#pragma once

#include "backends/opencl/codegen/fused_values.h"

namespace hlorun::opencl {

// What a rule sees.
struct OpAt {
  FusedValues& values;
  const Frame& frame;
  const hlo::Instruction& op;
  const Indices& index;
  ir::Expr mask;

  IndexMath& math() const { return values.math(); }
  Body& body() const { return values.body(); }
  const hlo::Shape& OperandShape(int64_t i) const { return op.operand(i)->shape(); }
  Value Operand(int64_t i, const Indices& at) const { return values.Get(frame, *op.operand(i), at, mask); }
  Value Operand(int64_t i, const Indices& at, const ir::Expr& also) const {
    return values.Get(frame, *op.operand(i), at, values.Both(mask, also));
  }
  Value Scalar(int64_t i) const { return values.Get(frame, *op.operand(i), {}); }
};

using OpRule = Values (*)(const OpAt&);
// Null when the opcode has no rule (elementwise ops need none).
OpRule FusedRule(hlo::Opcode opcode);

// Rules of their own files.
Values ReduceRule(const OpAt& at);
Values ReduceWindowRule(const OpAt& at);
Values DotRule(const OpAt& at);
Values ConvolutionRule(const OpAt& at);
Values GatherRule(const OpAt& at);

}  // namespace hlorun::opencl
