// Collective instructions -> CollectiveThunk: what replica groups mean in global device numbers.
#pragma once

#include "backends/opencl/plan.h"
#include "hlo/instruction.h"

namespace hlorun::opencl {

// All fields but slices and reduction_kernel. `module` gives replica and partition counts.
CollectiveThunk MakeCollectiveThunk(const hlo::Instruction& instruction);

}  // namespace hlorun::opencl
