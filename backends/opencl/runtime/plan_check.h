// What a saved plan could have wrong although its checksums are right.
#pragma once

#include "backends/opencl/plan.h"

namespace hlorun::opencl {

// Throws Error kInternal where the plan names what it has not: bytes of allocations, kernels, arguments, results,
// parameters, steps that were not started. Checked once, so that runs index without checks.
void CheckPlan(const Plan& plan);

}  // namespace hlorun::opencl
