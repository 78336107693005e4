// Elementwise HLO as kernel IR: one value in, one value out.
//
// Values are in computation types: bf16 and f16 are computed in f32 and rounded at each op, narrow integers in 8 bits
// and wrapped, complex numbers are pairs. Semantics are HLO's: integers wrap, x / 0 is -1, shifts past the width give 0
// or the sign, float to integer saturates and NaN becomes 0, minimum and maximum propagate NaN.
#pragma once

#include <span>

#include "backends/opencl/codegen/body.h"
#include "backends/opencl/codegen/kernel_ir.h"
#include "hlo/instruction.h"

namespace hlorun::opencl {

struct Value {
  ir::Expr re;
  ir::Expr im;  // null for real values
};

// Whether EmitElementwise knows the opcode (for these types).
bool IsElementwise(const hlo::Instruction& instruction);

// The result element of `instruction` from its operands' elements. Throws Error kUnimplemented naming it.
Value EmitElementwise(const hlo::Instruction& instruction, std::span<const Value> operands, Body& body);

// One real binary op on operands of element type `type`, rounded to it; for reducers that are a single opcode.
Value EmitBinary(hlo::Opcode opcode, hlo::ElementType type, const Value& x, const Value& y, Body& body);

// x, of element type `from`, as an element of type `to`: HLO's convert.
Value EmitConvert(const Value& x, hlo::ElementType from, hlo::ElementType to, Body& body);
// x rounded or wrapped to what a buffer of type `storage` can hold.
ir::Expr RoundTo(const ir::Expr& x, hlo::ElementType storage);
// The same of what arithmetic gave, denormals flushed already: shorter on some devices.
ir::Expr RoundResult(const ir::Expr& x, hlo::ElementType storage);
// A value with the bits of the stored element (bf16 as u16 ...) and back.
ir::Expr ToBits(const ir::Expr& x, hlo::ElementType storage);
ir::Expr FromBits(const ir::Expr& bits, hlo::ElementType storage);

// The computation type of an HLO type's real part.
ir::Type ValueType(hlo::ElementType type);
Value ConstantValue(const hlo::Literal& literal, int64_t linear);
Value ZeroOf(hlo::ElementType type);
Value SelectValue(const ir::Expr& condition, const Value& on_true, const Value& on_false);
// Integer arithmetic that wraps: through the unsigned type, since overflow is undefined in C.
ir::Expr Wrapping(ir::Op op, const ir::Expr& x, const ir::Expr& y);

}  // namespace hlorun::opencl
