// Cumulative ops on GPU class.
//
// Long rows: a group goes along a row, a chunk at a time. Each item has a few elements side by side; the items' totals
// are scanned in local memory, and what came before the item's own elements is combined with each of them.
// Other chains (columns, short rows): an item each, neighbours side by side.
// Where the chains are few they are cut: a first launch finds the total of each part, a second starts each part with
// what the parts before it give.
//
// The order in which elements are combined depends on shapes and types only.
#pragma once

#include <optional>

#include "backends/opencl/codegen/emitters.h"

namespace hlorun::opencl {

// Nullopt where the device is none of that class, or too small for the order that shapes ask for.
std::optional<Launches> EmitGpuCumulative(const EmitRequest& request);
int64_t GpuCumulativeScratchBytes(const hlo::Instruction& op, const DeviceSpec& device);

}  // namespace hlorun::opencl
