// What a session prints: --json, the human summary and --profile.
#pragma once

#include <string>
#include <vector>

#include "driver/cli/roofs.h"
#include "hlo/literal.h"
#include "hlorun/hlorun.h"

namespace hlorun::cli {

struct Timing {
  double first_ms = 0;
  std::vector<double> ms;  // the timed iterations
  double Best() const;
  double Median() const;
};

// One line: compile_s, first_ms, best_ms, median_ms, iterations, arena_bytes, ... device, results; and the profile,
// where there is one, with rows as ProfileTable has them, the summary and the costs that the roofs were taken from.
std::string JsonReport(const Executable& executable, const Timing& timing, const DeviceDescription& device,
                       const std::vector<hlo::Literal>& results, const Profile* profile, const DeviceSpec& measured);
// Shape, checksum and a few values of each result, and the times.
std::string HumanReport(const Executable& executable, const Timing& timing, const DeviceDescription& device,
                        const std::vector<hlo::Literal>& results);
// Per kernel: calls, time, share, GFLOP/s, GB/s, how much of its roof, the HLO it came from; slowest first. Then where
// the time goes in all.
std::string ProfileTable(const Profile& profile, const DeviceSpec& measured);

// Throws Error where what was printed did not reach the standard output (a full disk, a closed pipe).
void FlushOutput();

}  // namespace hlorun::cli
