// Lowering of scan: a loop over as many slices as there are.
#pragma once

#include <functional>
#include <vector>

#include "passes/dynamic/op_lowering.h"

namespace hlorun::passes {

// Copies a computation to the end of another, on these values of its parameters; its root's value.
using LowerInto = std::function<SizedValue(const hlo::Computation& computation, hlo::Computation* into,
                                           std::vector<SizedValue> parameters)>;

//   before: (ys, c) = (f32[<=8,4], f32[4]) scan(x, c0), dimensions={0}, num_carries=1, to_apply=step
//   after:  (n, x, c, ys) = while(trip < n) { (y, c) = step(x[trip], c); ys[trip] = y }
//
// The varying dimension may be the scanned one, another, or both. A dimension of the outputs has the size that it has
// after the first step. Refuses steps with side effects.
SizedValue LowerScan(OpLowering& at, const LowerInto& lower);

}  // namespace hlorun::passes
