// The kernel of a planned direct convolution on a CPU-class device.
#pragma once

#include "backends/opencl/kernels/convolution_plan.h"
#include "backends/opencl/kernels/kernel_draft.h"

namespace hlorun::opencl {

struct ConvolutionTask {
  const hlo::Instruction& instruction;  // executed: the convolution or a fusion
  const hlo::Instruction& hero;         // the convolution
  const AliasPattern& aliases;
  ArgumentRef input, weights;  // weights: packed in panels of plan.width() features
};

KernelDraft DirectConvolutionKernel(const ConvolutionTask& task, const ConvolutionPlan& plan);

}  // namespace hlorun::opencl
