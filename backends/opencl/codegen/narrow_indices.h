// Index arithmetic in 32 bits: GPUs compute in 64 by several instructions, and divide by dozens.
#pragma once

#include "backends/opencl/codegen/kernel_ir.h"

namespace hlorun::opencl {

// `function` with s32 for every s64. Only where its s64 values are indices alone, all of which, those of elements that
// are not there too, lie within 32 bits: the caller knows. What takes the bits of floats as s64 (a total order of f64)
// stays as it is.
ir::Function WithNarrowIndices(const ir::Function& function);

}  // namespace hlorun::opencl
