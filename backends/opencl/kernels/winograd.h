// The kernels of a convolution by Winograd's algorithm: weights at the points, then everything else.
#pragma once

#include <vector>

#include "backends/opencl/kernels/direct_convolution.h"
#include "backends/opencl/kernels/winograd_plan.h"

namespace hlorun::opencl {

std::vector<KernelDraft> WinogradKernels(const ConvolutionTask& task, const WinogradPlan& plan);

}  // namespace hlorun::opencl
