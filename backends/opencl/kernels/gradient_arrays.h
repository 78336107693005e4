// What the kernels of weights' gradients read and write: the input, the gradient of the output, and sums of each part.
#pragma once

#include "backends/opencl/kernels/weight_gradient.h"

namespace hlorun::opencl {

struct GradientArrays {
  GradientArrays(const WeightGradientTask& task, const WeightGradientPlan& plan) {
    const WeightGradientShape& shape = plan.shape;
    if (plan.is_packed) {
      input = parameters.Add("input", shape.compute_type, plan.tiles * plan.InputPixels() * plan.rows,
                             PackedInput(plan, false));
      gradient = parameters.Add("gradient", shape.compute_type, plan.panels * plan.GradientPixels() * plan.width(),
                                PackedGradient(plan, false));
    } else {
      input = parameters.Add("input", shape.input_type, plan.InputPixels() * shape.InputChannels(), task.input);
      gradient = parameters.Add("gradient", shape.gradient_type, plan.GradientPixels() * shape.features, task.gradient);
    }
    sums = parameters.Add("sums", shape.compute_type, plan.parts() * plan.SumsOfPart(),
                          ScratchSlice(0, plan.SumsBytes(), true));
  }

  // [tile][pixel][channel], and [panel][pixel][feature].
  static ArgumentRef PackedInput(const WeightGradientPlan& plan, bool written) {
    return ScratchSlice(plan.SumsBytes() + plan.PackedGradientBytes(), plan.PackedInputBytes(), written);
  }
  static ArgumentRef PackedGradient(const WeightGradientPlan& plan, bool written) {
    return ScratchSlice(plan.SumsBytes(), plan.PackedGradientBytes(), written);
  }

  KernelParameters parameters;
  ir::BufferRef input, gradient, sums;
};

}  // namespace hlorun::opencl
