// The second launch of products of GPU class whose sums were cut into parts.
#pragma once

#include "backends/opencl/kernels/tiled_product.h"

namespace hlorun::opencl {

// Adds the parts of each sum, [part][batch][m][n] in the instruction's scratch, in their order, and finishes them.
KernelDraft JoinPartsKernel(const TiledProduct& product, int64_t parts, const DeviceSpec& device);

}  // namespace hlorun::opencl
