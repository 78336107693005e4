// A device's cost table, measured once and kept beside compiled kernels: FOLDER/roofline/HASH.json.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "backends/opencl/runtime/executable.h"

namespace hlorun::opencl {

// The context's spec with its costs: its own where it has a peak, a bandwidth and a launch cost (--device_spec), else
// those that are kept for this device, else measured now (roofline.h) and kept. `build` says in which folder, or that
// nothing is kept; `observe` (may be empty) is told "roofline" before measuring. What is kept but cannot be read, or is
// another device's, is measured anew; processes that share a folder measure one after the other. Throws as
// MeasureRoofline does.
DeviceSpec MeasuredSpec(const std::shared_ptr<DeviceContext>& context, const BuildOptions& build,
                        const std::function<void(const std::string& stage)>& observe = {});

// All that a measurement depends on, as one line: device, driver, compiler, CPU, number of cores, caches.
std::string MeasuredDevice(const DeviceContext& context);
std::string RooflinePathIn(const std::string& cache_folder, const std::string& measured_device);

}  // namespace hlorun::opencl
