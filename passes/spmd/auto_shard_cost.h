// What a program costs on a device: seconds of its ops and of its collectives, by roofline and latency.
//
// Good enough to compare shardings of one program with each other; no prediction of a run's time.
#pragma once

#include "hlo/device_spec.h"
#include "hlo/module.h"

namespace hlorun::passes::spmd {

struct ProgramCost {
  double compute_seconds = 0;
  double collective_seconds = 0;
  double ring_bytes = 0;      // that each device sends
  double argument_bytes = 0;  // of one device
  double result_bytes = 0;
  double seconds() const { return compute_seconds + collective_seconds; }
};

// Of one device's program. Bodies of loops count as often as they run, where that is known; of a conditional's branches
// the costliest counts.
ProgramCost CostOfProgram(const hlo::Module& module, const DeviceSpec& device);

// Of one op that is neither control flow nor a collective. Elementwise ops are taken to be fused with their neighbours.
double SecondsOf(const hlo::Instruction& instruction, const DeviceSpec& device);

// How often a loop runs: what its backend_config says, or what its condition shows; else 1.
int64_t TripsOf(const hlo::Instruction& loop);

}  // namespace hlorun::passes::spmd
