// What hlorun::Array holds; for the driver only.
#pragma once

#include <memory>

#include "backends/opencl/runtime/executable.h"
#include "driver/api/sized_arrays.h"
#include "hlorun/hlorun.h"

namespace hlorun {

struct Array::Impl {
  opencl::DeviceArray array;
  std::shared_ptr<opencl::DeviceContext> context;
  std::unique_ptr<PaddedCopy> padded = std::make_unique<PaddedCopy>();
};

Array MakeArray(opencl::DeviceArray array, std::shared_ptr<opencl::DeviceContext> context);

}  // namespace hlorun
