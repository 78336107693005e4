// Joins clusters that work on the same rows: softmax and normalisations become one kernel that keeps a row in cache.
//
//   before: m = reduce(x, max)   s = reduce(exp(x - broadcast(m)), add)   y = exp(x - broadcast(m)) / broadcast(s)
//   after:  one cluster: x is read once from memory instead of three times
//
// A row is what lies along the reduced, innermost dimensions; all large arrays have the same dimensions, and whatever
// else is read is broadcast. A reduction's result that others read, too, becomes a result of the kernel.
#pragma once

#include "hlo/device_spec.h"
#include "passes/fusion/cluster.h"

namespace hlorun::passes {

void MergeRows(std::vector<Cluster>& clusters, const DeviceSpec& device);

}  // namespace hlorun::passes
