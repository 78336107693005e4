// Scheduled kernel IR -> OpenCL C. The last and dumbest step: one statement a line, no decisions.
#pragma once

#include <string>

#include "backends/opencl/codegen/schedule.h"
#include "hlo/device_spec.h"

namespace hlorun::opencl {

// One __kernel called `kernel.function.name`, after the helpers it needs. Helpers are guarded by macros, so that sources
// can be joined into one program. Runs under -cl-std=CL1.2 and later; doubles appear only where the function has them.
std::string ToOpenClC(const ScheduledKernel& kernel, const DeviceSpec& device);

}  // namespace hlorun::opencl
