// topk on GPU class: a group finds the best of a piece of a row, and again the best of what the pieces gave, until one
// piece is left.
//
// Each item keeps the best eight of what it reads, in registers; where more than eight are asked for it reads no more
// than eight, and only the lists of the k items whose first entries are the best are looked at further, since the k
// best can lie in no others. Such lists become one list of the group in local memory: two sorted lists, the one turned
// round, make the better half of both by a maximum each, in an order that a bitonic merge then sorts.
#pragma once

#include "backends/opencl/codegen/emitters.h"

namespace hlorun::opencl {

bool FitsGpuTopK(const DeviceSpec& device);
Launches EmitGpuTopK(const EmitRequest& request);
int64_t GpuTopKScratchBytes(const hlo::Instruction& top, const DeviceSpec& device);

}  // namespace hlorun::opencl
