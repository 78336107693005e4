// Gives a static module's parameters bounded dimensions, and everything whose size follows from them.
//
//   before: x = f32[8,4] parameter(0)   r = f32[8,4] tanh(x)         bounds: dimension 0 of leaf 0
//   after:  x = f32[<=8,4] parameter(0) r = f32[<=8,4] tanh(x)
//
// The bound is the size that the module has there (resize_parameters.h gives it another). What the program computed
// from that size when it was exported (the divisor of a mean) is a constant of it and stays one: export with a symbolic
// dimension instead.
#pragma once

#include <cstdint>
#include <vector>

#include "passes/dynamic/signature.h"

namespace hlorun::passes {

// Inlines calls and fusions and gives each control computation one caller: sizes are followed through these.
void PrepareForSizes(hlo::Module& module);

// Expects a prepared module. Throws Error naming the instruction where a size cannot follow.
void BoundParameters(hlo::Module& module, const std::vector<DimensionOfLeaf>& dimensions);

}  // namespace hlorun::passes
