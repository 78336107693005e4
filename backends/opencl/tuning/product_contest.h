// Candidate schedules of one product, run on a device against each other.
#pragma once

#include <memory>
#include <vector>

#include "backends/opencl/kernels/product_schedule.h"
#include "backends/opencl/runtime/executable.h"

namespace hlorun::opencl {

struct ContestLimits {
  double seconds = 0.5;                   // of running; building takes what it takes
  int64_t rounds = 15, least_rounds = 4;  // one round says little of a busy machine: these within 10 x `seconds`
};

// The best time of a run of each candidate, microseconds; infinity for one that could not be built or run, or whose
// result is not that of the first. The operands are such that every sum is exact, whatever the order: candidates that
// compute the same give the same bits.
// All run in turns, the slow ones drop out. Throws Error when not even the first candidate runs.
std::vector<double> TimeCandidates(const ProductProblem& problem, const std::vector<ProductSchedule>& candidates,
                                   const std::shared_ptr<DeviceContext>& context, const BuildOptions& build,
                                   const ContestLimits& limits);

}  // namespace hlorun::opencl
