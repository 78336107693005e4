// Operands of a product as tiles of the matrix unit (matrix_unit_plan.h).
#pragma once

#include <vector>

#include "backends/opencl/kernels/matrix_unit_plan.h"
#include "backends/opencl/kernels/multiply.h"

namespace hlorun::opencl {

// Both operands, or rhs alone: tiles of rows of lhs, 64 bytes of depth each; tiles of 16 columns of rhs, of which a row
// holds a word of each column, two bf16 or four s8 along the depth. In one launch; rhs in one of its own where it is
// kept. Operands that are computed (computed_operand.h) are loaded as vectors of elements, each once.
std::vector<KernelDraft> PackTilesOfUnit(const ProductTask& task, const MatrixUnitPlan& plan);

}  // namespace hlorun::opencl
