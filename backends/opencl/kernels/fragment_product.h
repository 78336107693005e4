// Matrix products of 16-bit floats and of s8 by a GPU's matrix instructions (codegen/fragments.h): a work-group
// computes a tile of the result from blocks in local memory (fragment_operand.h); each of its sub-groups keeps squares
// of sums in registers.
#pragma once

#include "backends/opencl/kernels/tiled_product.h"

namespace hlorun::opencl {

// Both operands are of bf16, both of f16, or both of s8 (sums of s32, which wrap). Parts of sums as in
// TiledProductKernel. `device` says how its kernels use matrix instructions.
KernelDraft FragmentProductKernel(const TiledProduct& product, const FragmentSchedule& schedule,
                                  const DeviceSpec& device);

}  // namespace hlorun::opencl
