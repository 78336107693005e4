// The kernel of a planned depthwise convolution on a CPU-class device.
#pragma once

#include "backends/opencl/kernels/depthwise_plan.h"
#include "backends/opencl/kernels/direct_convolution.h"

namespace hlorun::opencl {

// `task.weights`: as they are.
KernelDraft DepthwiseKernel(const ConvolutionTask& task, const DepthwisePlan& plan);

}  // namespace hlorun::opencl
