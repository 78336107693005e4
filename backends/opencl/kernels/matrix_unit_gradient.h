// The kernels of a weight gradient on the CPU's matrix unit: copies of the gradient and of the input, sums of each part
// of the pixels, then the result from them.
#pragma once

#include <vector>

#include "backends/opencl/kernels/matrix_unit_gradient_plan.h"
#include "backends/opencl/kernels/weight_gradient.h"

namespace hlorun::opencl {

std::vector<KernelDraft> MatrixUnitGradientKernels(const WeightGradientTask& task, const MatrixUnitGradientPlan& plan);

}  // namespace hlorun::opencl
