// CLBlast's own tuner of products (clblast.h: TuneXgemm, TuneXgemmDirect).
#pragma once

#include <memory>
#include <optional>

#include "backends/opencl/clblast_numbers.h"
#include "backends/opencl/kernels/product_schedule.h"
#include "backends/opencl/runtime/device_context.h"

namespace hlorun::opencl {

// What it finds fastest for products of about these sizes. It compiles and runs some dozens of kernels of each kind:
// tens of seconds. Nullopt: no library, or one without a tuner for the type, or it found nothing that runs.
std::optional<ClblastNumbers> TuneClblast(const ProductShape& shape, const std::shared_ptr<DeviceContext>& context);

}  // namespace hlorun::opencl
