// Measures a device's cost table: what its kernels can reach at most, and what a launch costs.
#pragma once

#include <memory>

#include "backends/opencl/runtime/executable.h"

namespace hlorun::opencl {

// The context's spec with every cost that bench/roofline prints, all-reduces aside:
//   f32_gflops, cost_table[*_gflops]      multiply-adds on all cores (peak_kernels.h); of what the device has
//   bandwidth_gbps, cost_table[lN_gbps]   copies in memory and in each cache, all cores; bytes read plus bytes written
//   cost_table[memory_read_gbps, lN_read_gbps]
//   launch_us, cost_table[launch_and_finish_us]   queued behind others; from an idle queue to its end
//   cost_table[queues_meet_us]            until two queues have waited for each other, each for what the other holds
//   cost_table[launch_by_team_us]         likewise, in the calling thread (runtime/team.h), where short runs are
// Best times of several repetitions: a cost table describes an undisturbed machine. Takes one to three seconds and all
// cores. A cache too small for what keeps all cores busy is left out. Throws Error when the device refuses a kernel.
DeviceSpec MeasureRoofline(const std::shared_ptr<DeviceContext>& context);

}  // namespace hlorun::opencl
