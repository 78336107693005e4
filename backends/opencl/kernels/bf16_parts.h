// Numbers of f32 cut into parts of bf16 for the matrix unit (matrix_unit_plan.h).
#pragma once

#include <functional>

#include "backends/opencl/codegen/kernel_ir.h"
#include "passes/options.h"

namespace hlorun::opencl {

// Not on several devices: products there are cut where that hides collectives, and pieces that pay no more for their
// copies must have the bits of the whole.
bool MayCutIntoParts(const CompileOptions& options);

// For each of `parts`: save(part, words) of two vectors of 16 numbers, which `join` makes of them: kUnitPairs or
// kUnitRun. Calls kUnitFirstPart and kUnitPart.
ir::Stmt SaveBf16Parts(const ir::Expr& first, const ir::Expr& second, int64_t parts, const char* join,
                       const std::function<ir::Stmt(int64_t, const ir::Expr&)>& save);

}  // namespace hlorun::opencl
