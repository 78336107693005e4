// Few rows against rhs [n][k]: each element of the result as a dot product of two rows.
#pragma once

#include "backends/opencl/kernels/multiply.h"

namespace hlorun::opencl {

// A work-group walks panels of a few rows of rhs, each with all rows of lhs, summed lane by lane along k
// (plan.dot_products). What several panels give waits in private memory to be finished as vectors along the columns.
KernelDraft DotProductKernel(const ProductTask& task, const ProductPlan& plan);

}  // namespace hlorun::opencl
