// How much of a product is there: sizes that its kernels read, where its result or its contraction is needed in part.
#pragma once

#include "backends/opencl/kernels/loop_ends.h"
#include "backends/opencl/kernels/multiply.h"
#include "backends/opencl/kernels/product_plan.h"

namespace hlorun::opencl {

// The dimensions of the product that a result's are (m, n exchanged where the plan says so).
struct ProductSizes {
  SizedLoop batch, m, n, k;
};
ProductSizes ProductSizesOf(const ProductTask& task, const ProductShape& shape);

}  // namespace hlorun::opencl
