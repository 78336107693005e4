// Steps that the host computes: custom-calls of the user's own, and LAPACK's.
#pragma once

#include "backends/opencl/plan.h"

namespace hlorun::opencl {

class ThunkRunner;

// The queue has been waited for. Throws kUnimplemented naming the target when nothing defines it.
void RunHostCall(const HostCallThunk& call, ThunkRunner& runner);

}  // namespace hlorun::opencl
