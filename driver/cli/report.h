// What a session prints: --json, the human summary and --profile.
#pragma once

#include <string>
#include <vector>

#include "hlo/literal.h"
#include "hlorun/hlorun.h"

namespace hlorun::cli {

struct Timing {
  double first_ms = 0;
  std::vector<double> ms;  // the timed iterations
  double Best() const;
  double Median() const;
};

// One line: compile_s, first_ms, best_ms, median_ms, iterations, arena_bytes, ... device, results.
std::string JsonReport(const Executable& executable, const Timing& timing, const DeviceDescription& device,
                       const std::vector<hlo::Literal>& results);
// Shape, checksum and a few values of each result, and the times.
std::string HumanReport(const Executable& executable, const Timing& timing, const DeviceDescription& device,
                        const std::vector<hlo::Literal>& results);
// Per kernel: calls, time, share, GFLOP/s, GB/s, the HLO it came from; slowest first.
std::string ProfileTable(const std::vector<StepTime>& steps);

}  // namespace hlorun::cli
