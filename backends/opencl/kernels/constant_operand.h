// Which arrays are the same in every run, so that kernels that prepare them run once (kept_work.h).
#pragma once

#include "hlo/instruction.h"
#include "passes/options.h"

namespace hlorun::opencl {

// Whether `value`, of an executed computation, is made of nothing but constants and parameters that the caller says are
// constant. False where that is not plain to see.
bool IsSameInEveryRun(const hlo::Instruction& value, const CompileOptions& options);

}  // namespace hlorun::opencl
