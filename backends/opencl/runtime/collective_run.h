// A collective thunk as calls of a Communicator on host-visible memory.
#pragma once

#include "backends/opencl/plan.h"

namespace hlorun::opencl {

class ThunkRunner;

// Waits for the queue, then exchanges. Throws kFailedPrecondition when the run has no communicator.
void RunCollective(const CollectiveThunk& thunk, ThunkRunner& runner);

}  // namespace hlorun::opencl
