// Dots and convolutions as tiled products (GPU class).
#pragma once

#include "backends/opencl/kernels/convolution_plan.h"
#include "backends/opencl/kernels/direct_convolution.h"
#include "backends/opencl/kernels/multiply.h"
#include "backends/opencl/kernels/tiled_product.h"

namespace hlorun::opencl {

TiledProduct TiledDot(const ProductTask& task, const ProductShape& shape);
// Pixels and, by window and channel, weights; groups of features are a batch of such products.
TiledProduct TiledConvolution(const ConvolutionTask& task, const ConvolutionShape& shape);

// By tiles or fragments, as `schedule` says; and a second one where that cuts sums into parts, which then lie in the
// instruction's scratch.
std::vector<KernelDraft> GpuProductKernels(const TiledProduct& product, const ProductSchedule& schedule,
                                           const DeviceSpec& device);
int64_t PartBytes(const ProductShape& shape, const ProductSchedule& schedule);

}  // namespace hlorun::opencl
