// Uniform predicates: on devices of several kinds, what all of them compute alike may differ in its last bits, and so
// may a comparison of it. Then one device would take a branch, or one more turn of a loop, without the others: a wrong
// result, or a collective that some never enter. So the first device decides for all.
//   before: ROOT more = pred[] compare(error, bound)
//   after:  more = pred[] compare(error, bound);  ROOT same = pred[] collective-broadcast(more)
#pragma once

#include "hlo/module.h"

namespace hlorun::passes::spmd {

// In a partitioned module of one replica whose predicates are replicated values. Leaves alone loops that count, and
// predicates that integers alone decide, for those are the same everywhere. Returns how many it changed.
int64_t MakePredicatesUniform(hlo::Module& module);

// Module::frontend_attributes: set by the driver where a job's devices are not all of one kind.
inline constexpr const char* kMixedDevices = "hlorun.mixed_devices";

}  // namespace hlorun::passes::spmd
