// The kernel of a planned convolution along pixels on a CPU-class device. It reads the weights as they are.
#pragma once

#include "backends/opencl/kernels/direct_convolution.h"
#include "backends/opencl/kernels/pixel_convolution_plan.h"

namespace hlorun::opencl {

KernelDraft PixelConvolutionKernel(const ConvolutionTask& task, const PixelConvolutionPlan& plan);

}  // namespace hlorun::opencl
