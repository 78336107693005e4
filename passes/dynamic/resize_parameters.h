// Another size for dimensions of a module's parameters, and for everything whose size follows from them: the module as
// it would have been exported for that size.
//
//   before: x = f32[8,4] parameter(0)   z = f32[8,4] broadcast(zero)   r = f32[8,4] maximum(x, z)    leaf 0, dimension
//   0: 32 after:  x = f32[32,4] parameter(0)  z = f32[32,4] broadcast(zero)  r = f32[32,4] maximum(x, z)
//
// Sizes spread forwards and backwards through the dimensions that each op shares between operands and result. What was
// computed from the old size at export (the divisor of a mean) is a constant and stays.
#pragma once

#include <cstdint>
#include <vector>

#include "passes/dynamic/signature.h"

namespace hlorun::passes {

struct NewSize {
  DimensionOfLeaf dimension;  // of the flattened parameters
  int64_t size = 0;
};

// Expects calls and fusions inlined, and each control computation called once. Throws Error naming the instruction
// where a size cannot follow, and the parameter that would have to change as well and is not among `sizes`.
void ResizeParameters(hlo::Module& module, const std::vector<NewSize>& sizes);

// Throws Error naming a parameter that meets one of `dimensions` and is not among them itself.
void CheckParametersMeet(hlo::Module& module, const std::vector<DimensionOfLeaf>& dimensions);

}  // namespace hlorun::passes
