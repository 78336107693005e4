// Few rows against rhs [k][n] that comes from memory: what its rows are read once for.
#pragma once

#include "backends/opencl/kernels/multiply.h"

namespace hlorun::opencl {

// A work-group walks rows of rhs one after the other, each in one run, beside sums in private memory; MultiplyKernel's
// tiles would jump from row to row. The sums are partial ones (plan.streams): CombineKernel follows.
KernelDraft StreamKernel(const ProductTask& task, const ProductPlan& plan);

}  // namespace hlorun::opencl
