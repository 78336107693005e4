// Loop roles -> a device.
//
// CPU class: the nest of parallel loops is flattened and cut into work-groups of one work-item, each walking a range of
// it; vector loops are widened to floatN code (stride 1: vector loads and stores, stride 0: a scalar, else gathers).
// GPU class: the flattened nest becomes work-groups, vector loops are dealt to the lanes of a group; stores outside
// them are made by lane 0 (OnFirstLane), and barriers stay. A group that has several turns ends each with a barrier
// where there are local arrays.
#pragma once

#include "backends/opencl/codegen/kernel_ir.h"
#include "backends/opencl/plan.h"
#include "hlo/device_spec.h"

namespace hlorun::opencl {

// Work-groups that a CPU's compute unit gets where there is work for as many: enough to even out what cores that start
// apart cannot share.
inline constexpr int64_t kGroupsPerUnit = 32;

struct ScheduledKernel {
  ir::Function function;  // serial loops only
  Grid grid;
};

// Throws Error kInternal when the kernel asks for more local memory, or larger groups, than the device has.
ScheduledKernel Schedule(const ir::Function& function, const DeviceSpec& device);

// `body` by the group's first work-item alone. Within it nothing is dealt out and no store is guarded again. (Intel's
// compiler crashes on a guard within the same guard.)
ir::Stmt OnFirstLane(const ir::Stmt& body);

// Lanes of a vector loop over elements of `element_bytes` on this device: 1 to 16.
int VectorLanes(const DeviceSpec& device, int64_t element_bytes);
// Work-items in a group on GPU class; 1 on CPU class.
int64_t GroupLanes(const DeviceSpec& device);

}  // namespace hlorun::opencl
