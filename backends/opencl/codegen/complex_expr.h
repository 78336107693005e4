// Arithmetic and functions of complex numbers as pairs of real expressions.
#pragma once

#include "backends/opencl/codegen/element_expr.h"

namespace hlorun::opencl {

// Whether the opcode has a complex form with complex operands.
bool HasComplexForm(hlo::Opcode opcode);
Value EmitComplex(const hlo::Instruction& instruction, std::span<const Value> operands, Body& body);
Value EmitComplexBinary(hlo::Opcode opcode, const Value& x, const Value& y, Body& body);

}  // namespace hlorun::opencl
