// Steps that no kernel of a device can compute: the evaluator runs them on the host, in the middle of the plan.
//
// So a module with a few f64 instructions runs on a device without f64, with the right bits, at the host's speed. Each
// such step counts as a host thunk.
#pragma once

#include <string>

#include "hlo/device_spec.h"
#include "hlo/instruction.h"

namespace hlorun::opencl {

// Whether `instruction`, or a computation that it calls, has a type that the device cannot compute with: f64 and c128
// where there is no f64.
bool NeedsHostEvaluation(const hlo::Instruction& instruction, const DeviceSpec& device);

// A module that computes `instruction` alone, as text: one parameter for each operand. What HostCallThunk::opaque
// holds.
std::string EvaluatedModule(const hlo::Instruction& instruction);

}  // namespace hlorun::opencl
