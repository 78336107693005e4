// Scheduled kernel IR -> OpenCL C. The last and dumbest step: one statement a line, no decisions.
#pragma once

#include <string>
#include <vector>

#include "backends/opencl/codegen/schedule.h"
#include "hlo/device_spec.h"

namespace hlorun::opencl {

// One __kernel called `kernel.function.name`, after the helpers it needs. Helpers are guarded by macros, so that
// sources can be joined into one program. Runs under -cl-std=CL1.2 and later; doubles appear only where the function
// has them.
std::string ToOpenClC(const ScheduledKernel& kernel, const DeviceSpec& device);

// What a scheduled kernel does, for a scope of another kernel in which its parameters and local arrays are pointers of
// their names, and kGroup and kLane what its own groups and work-items count from 0.
inline constexpr const char* kGroup = "hl_group";
inline constexpr const char* kLane = "hl_lane";
struct OpenClBody {
  std::string helpers, text;
  std::vector<ir::BufferRef> local_arrays;
};
OpenClBody ToOpenClBody(const ir::Function& function, int depth, const DeviceSpec& device);

// What functions whose vectors have 512 bits are declared with: without it PoCL splits them in two. Empty elsewhere.
const char* WidthAttribute(const DeviceSpec& device);

// "__global const float*", of a parameter, or "__local float*".
std::string PointerTo(const ir::Buffer& array);

// `source`, which ToOpenClC printed, with parameters guard0, guard1 ... behind the others: the kernel returns at once
// unless every condition (an OpenCL C expression of its guard) holds.
struct GuardText {
  std::string element_type;  // of the array that the guard is
  std::string condition;
};
std::string WithGuards(const std::string& source, const std::string& kernel, const std::vector<GuardText>& guards);

}  // namespace hlorun::opencl
