// The kernels of a planned weight gradient: sums of each part of the pixels, then the result from them.
#pragma once

#include <vector>

#include "backends/opencl/kernels/kernel_draft.h"
#include "backends/opencl/kernels/weight_gradient_plan.h"

namespace hlorun::opencl {

struct WeightGradientTask {
  const hlo::Instruction& instruction;  // executed: the convolution or a fusion
  const hlo::Instruction& hero;         // the convolution
  const AliasPattern& aliases;
  ArgumentRef input, gradient;
};

std::vector<KernelDraft> WeightGradientKernels(const WeightGradientTask& task, const WeightGradientPlan& plan);

}  // namespace hlorun::opencl
