// The schedules that are worth measuring for a product on a device.
#pragma once

#include <vector>

#include "backends/opencl/kernels/product_schedule.h"

namespace hlorun::opencl {

// Every one can run, each once, what the rules choose first; the others in the order in which they should be measured
// while there is time. `few`: a handful that differ much; else all.
// Without `other_orders` only those that add in the order of what the rules choose.
std::vector<ProductSchedule> ProductCandidates(const ProductProblem& problem, const DeviceSpec& device, bool few,
                                               bool other_orders);

}  // namespace hlorun::opencl
