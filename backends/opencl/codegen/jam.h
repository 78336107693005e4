// Unroll and jam: two iterations of a loop side by side.
#pragma once

#include "backends/opencl/codegen/kernel_ir.h"

namespace hlorun::opencl {

// `body` with `item` as `first` and, with names and arrays of its own, as `second`, in turns: loops of both that have
// the same ends become one. What one of them waits for (sums along a short row, its quotients and roots) the other
// fills. Each keeps its own order, and so its bits. The two must be independent, as a parallel loop's iterations are.
ir::Stmt Jammed(const ir::Stmt& body, const ir::Var& item, const ir::Expr& first, const ir::Expr& second);

}  // namespace hlorun::opencl
