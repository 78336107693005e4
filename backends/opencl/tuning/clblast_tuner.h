// CLBlast's own tuner of products (clblast.h: TuneXgemm, TuneXgemmDirect).
#pragma once

#include <memory>
#include <optional>

#include "backends/opencl/clblast_numbers.h"
#include "backends/opencl/kernels/product_schedule.h"
#include "backends/opencl/runtime/device_context.h"

namespace hlorun::opencl {

// What it finds fastest for products of about these sizes. Of all the numbers that a kernel can be compiled with it
// tries `share`, drawn by CLBlast: as it stands here it compiles and runs some dozens of kernels of each kind, for tens
// of seconds. Nullopt: no library, or one without a tuner for the type, or it found nothing that runs.
std::optional<ClblastNumbers> TuneClblast(const ProductShape& shape, const std::shared_ptr<DeviceContext>& context,
                                          double share = 1.0 / 2048);

}  // namespace hlorun::opencl
