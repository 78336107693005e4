// Dots and convolutions as tiled products (GPU class).
#pragma once

#include "backends/opencl/kernels/convolution_plan.h"
#include "backends/opencl/kernels/direct_convolution.h"
#include "backends/opencl/kernels/multiply.h"
#include "backends/opencl/kernels/tiled_product.h"

namespace hlorun::opencl {

TiledProduct TiledDot(const ProductTask& task, const ProductShape& shape);
TiledProduct TiledConvolution(const ConvolutionTask& task, const ConvolutionShape& shape);

// By tiles or fragments, as `schedule` says.
KernelDraft GpuProductKernel(const TiledProduct& product, const ProductSchedule& schedule, const DeviceSpec& device);

}  // namespace hlorun::opencl
