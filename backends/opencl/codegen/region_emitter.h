// Kernels, loops and branches that one work-item runs in turn (passes/fusion/regions.h).
#pragma once

#include "backends/opencl/codegen/emitters.h"

namespace hlorun::opencl {

// One launch; before it one more for each large array that the region updates in part and may not overwrite.
// `kernels` says what may share memory inside.
Launches EmitRegion(const EmitRequest& request, const passes::KernelModel& kernels);
int64_t RegionScratchBytes(const hlo::Instruction& region, const EmitContext& context,
                           const passes::KernelModel& kernels);

}  // namespace hlorun::opencl
