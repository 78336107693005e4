// Runs transfer thunks: between kernels, in program order.
#pragma once

#include "backends/opencl/plan.h"

namespace hlorun::opencl {

class ThunkRunner;

// The queue has been waited for. Throws kUnimplemented where the run has no channels, kAborted when no value comes.
void RunTransfer(const TransferThunk& transfer, ThunkRunner& runner);

}  // namespace hlorun::opencl
