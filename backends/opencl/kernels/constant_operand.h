// Which arrays are the same in every run, or in every trip of a loop, so that kernels that prepare them run once
// (kept_work.h, loop_work.h).
#pragma once

#include "hlo/device_spec.h"
#include "hlo/instruction.h"
#include "passes/options.h"

namespace hlorun::opencl {

// Whether `value`, of an executed computation, is made of nothing but constants and parameters that the caller says are
// constant. False where that is not plain to see.
bool IsSameInEveryRun(const hlo::Instruction& value, const CompileOptions& options);

// Whether `value` comes unchanged from trip to trip of the loop in whose body it is, so that what prepares it moves in
// front of the loop (loop_work.h): of a counted loop of some trips, whose arrays of that kind fit into the last cache
// together. What comes from memory in each trip gains nothing, and would lie there twice.
bool IsSameInEveryTrip(const hlo::Instruction& value, const DeviceSpec& device);

}  // namespace hlorun::opencl
