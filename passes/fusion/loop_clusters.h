// Joins loops over the same places that read the same arrays, or one another's results: one kernel with several results
// reads what they share once, and has in registers what one makes for the other.
//
//   before: m = 0.9 * m0 + 0.1 * g   v = 0.9 * v0 + 0.1 * g * g   p = p0 - m / sqrt(v)      (three kernels)
//   after:  (m, v, p) = fusion(m0, v0, p0, g)
//
// Only loops whose elements lie side by side for all of them: no transposes, no gathers, no concatenations, whose parts
// have loops of their own.
#pragma once

#include "passes/fusion/cluster.h"

namespace hlorun::passes {

void MergeLoops(hlo::Computation& computation, std::vector<Cluster>& clusters);

}  // namespace hlorun::passes
