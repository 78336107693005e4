// A collective thunk as calls of a Communicator on host-visible memory.
#pragma once

#include "backends/opencl/plan.h"
#include "backends/opencl/runtime/cl.h"

namespace hlorun::opencl {

class ThunkRunner;

// Exchanges; the operands are there. `queue`: for what the host reads and writes of devices with memory of their own.
void RunCollective(const CollectiveThunk& thunk, ThunkRunner& runner, cl_command_queue queue);

}  // namespace hlorun::opencl
