// The gradient of a max pooling, a select-and-scatter: its kernels read what is padded as it lies in memory, and finish
// what they give, the part that is no padding, masked by an activation's gradient.
//
//   before: p = pad(x, -inf)   g = select-and-scatter(p, s, 0)   c = slice(g)   r = select(mask, c, zeros)
//   after:  r = fusion(x, s, mask): which element of p each window selects; then r, whose elements ask their windows
#pragma once

#include "passes/fusion/cluster.h"

namespace hlorun::passes {

inline bool IsPoolingGradient(const hlo::Instruction& instruction) {
  return instruction.Is(hlo::Opcode::kSelectAndScatter);
}

// Whether the windows of `gradient` may compute `instruction`, which they read.
bool FitsSelection(const hlo::Instruction& instruction, const hlo::Instruction& gradient);

// Whether a loop that finishes a gradient may compute `instruction`: what keeps vectors along the last dimension.
bool FitsGradientsLoop(const hlo::Instruction& instruction);

// Whether the loop `cluster`, which reads `evaluations` elements of `gradient`, may compute it.
bool MayFinishGradient(const Cluster& cluster, const hlo::Instruction& gradient, double evaluations);

}  // namespace hlorun::passes
