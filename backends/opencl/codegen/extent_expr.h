// An extent (passes/dynamic/extents.h) as kernel IR.
#pragma once

#include "backends/opencl/codegen/kernel_ir.h"
#include "passes/dynamic/extents.h"

namespace hlorun::opencl {

// The extent's value where its operand is `size`, within 0 and `bound`.
ir::Expr ExtentExpr(const ir::Expr& size, const passes::OperandExtent& extent, int64_t bound);

}  // namespace hlorun::opencl
