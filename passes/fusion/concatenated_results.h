// A concatenation of what one reduction's kernel makes is part of that kernel, which stores each result where it
// belongs in the whole, instead of into an array of its own that is then copied.
//
//   before: m, s = f32[4096], f32[4096] fusion(x), kind=kInput      root: tuple(reduce(x), reduce(x * x))
//           c = f32[4096,2] fusion(m, s)                            root: concatenate(reshape(m), reshape(s)), {1}
//   after:  c = f32[4096,2] fusion(x), kind=kInput                  root: concatenate(reshape(reduce(x)), ...), {1}
//
// Elementwise ops that finish the results go with them. Kernels that compute several results of as many elements know
// the form (backends/opencl/codegen/result_parts.h).
#pragma once

#include <vector>

#include "passes/fusion/cluster.h"

namespace hlorun::passes {

// After siblings are joined, before loops are: what reads a reduction's results would be another loop's by then.
void MergeConcatenatedResults(std::vector<Cluster>& clusters);

}  // namespace hlorun::passes
