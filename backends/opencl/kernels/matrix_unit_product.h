// The kernels of a product on the CPU's matrix unit (matrix_unit_plan.h).
#pragma once

#include <vector>

#include "backends/opencl/kernels/matrix_unit_plan.h"
#include "backends/opencl/kernels/multiply.h"

namespace hlorun::opencl {

// Copying both operands into tiles, and multiplying them, in order.
std::vector<KernelDraft> MatrixUnitKernels(const ProductTask& task, const MatrixUnitPlan& plan);

}  // namespace hlorun::opencl
