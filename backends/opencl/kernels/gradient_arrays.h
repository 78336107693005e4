// What the kernels of weights' gradients read and write: the input, the gradient of the output, and sums of each part.
#pragma once

#include "backends/opencl/kernels/weight_gradient.h"

namespace hlorun::opencl {

struct GradientArrays {
  GradientArrays(const WeightGradientTask& task, const WeightGradientPlan& plan) {
    const WeightGradientShape& shape = plan.shape;
    input = parameters.Add("input", shape.input_type,
                           shape.images * shape.rows.in * shape.columns.in * shape.InputChannels(), task.input);
    gradient = parameters.Add("gradient", shape.gradient_type,
                              shape.GradientRows() * shape.columns.window * shape.features, task.gradient);
    sums = parameters.Add("sums", shape.compute_type, plan.parts() * plan.SumsOfPart(),
                          ScratchSlice(0, plan.ScratchBytes(), true));
  }

  KernelParameters parameters;
  ir::BufferRef input, gradient, sums;
};

}  // namespace hlorun::opencl
