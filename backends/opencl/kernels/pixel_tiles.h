// Pixels of an array [image][row][column][channel], of bf16 or in parts of it, copied for the matrix unit in the order
// of a weight gradient's steps (matrix_unit_gradient_plan.h), zeros where there is no pixel.
#pragma once

#include "backends/opencl/kernels/kernel_draft.h"
#include "backends/opencl/kernels/matrix_unit_gradient_plan.h"

namespace hlorun::opencl {

// Pairs of pixels as words, of 16 features side by side: [block of features][image][step][part][2][pair][feature].
KernelDraft PackGradientTiles(const MatrixUnitGradientPlan& plan, const ArgumentRef& gradient,
                              const ArgumentRef& tiles);
// Pixels of a channel side by side: [phase][block of channels][image][part][channel][pixel].
KernelDraft PackInputChannels(const MatrixUnitGradientPlan& plan, const ArgumentRef& input,
                              const ArgumentRef& channels);

}  // namespace hlorun::opencl
