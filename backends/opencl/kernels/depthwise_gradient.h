// The gradient of a depthwise convolution's weights: sums of each part of the pixels, where a planned weight gradient
// wants them.
#pragma once

#include "backends/opencl/kernels/weight_gradient.h"

namespace hlorun::opencl {

// `plan.shape.IsDepthwise()`.
KernelDraft DepthwiseGradientKernel(const WeightGradientTask& task, const WeightGradientPlan& plan);

}  // namespace hlorun::opencl
