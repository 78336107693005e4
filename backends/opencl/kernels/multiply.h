// The kernels of a planned matrix product on a CPU-class device.
#pragma once

#include <vector>

#include "backends/opencl/kernels/packing.h"
#include "backends/opencl/kernels/product_plan.h"

namespace hlorun::opencl {

// What a product is computed for.
struct ProductTask {
  const hlo::Instruction& instruction;  // executed: the dot or a fusion
  const hlo::Instruction& hero;         // the dot, or a convolution that is a product of pixels and weights
  const AliasPattern& aliases;
  ArgumentRef lhs, rhs;  // of the plan's roles (exchanged already where the shape says swapped)
};

// Tiles of the result, from operands in place or packed.
KernelDraft MultiplyKernel(const ProductTask& task, const ProductPlan& plan);
// The result from partial sums over parts of k.
KernelDraft CombineKernel(const ProductTask& task, const ProductPlan& plan);

// Packing, multiplying and combining, in order.
std::vector<KernelDraft> ProductKernels(const ProductTask& task, const ProductPlan& plan);

}  // namespace hlorun::opencl
