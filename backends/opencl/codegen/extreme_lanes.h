// Maxima and minima of many f32, with HLO's rules (NaN wins, -0 is below +0, a denormal is a zero), at four
// instructions an element: the rules are looked at once, at the end. What is kept beside the best value so far is the
// signs of all values, which decide the sign of a zero, and their largest magnitude, which shows a NaN.
#pragma once

#include "backends/opencl/codegen/body.h"
#include "backends/opencl/codegen/kernel_ir.h"
#include "hlo/opcode.h"

namespace hlorun::opencl {

struct ExtremeSoFar {
  ir::Expr best;       // f32; NaNs are passed over
  ir::Expr signs;      // s32: the sign bits of all, by and (maximum) or or (minimum)
  ir::Expr magnitude;  // s32: the largest, as bits
};

bool IsExtreme(hlo::Opcode opcode);
ExtremeSoFar ExtremeOfNone(hlo::Opcode opcode);
ExtremeSoFar ExtremeOf(const ir::Expr& x);
ExtremeSoFar ExtremeOfBoth(hlo::Opcode opcode, const ExtremeSoFar& a, const ExtremeSoFar& b, Body& body);
ir::Expr ExtremeResult(const ExtremeSoFar& all, Body& body);

}  // namespace hlorun::opencl
