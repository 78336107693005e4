// --trace: what every rank's first device did in one run, in Chrome's trace event format, which Perfetto opens.
#pragma once

#include <string>
#include <vector>

#include "backends/collectives/job.h"
#include "hlorun/hlorun.h"

namespace hlorun::cli {

struct RankTrace {
  std::string host;
  std::vector<StepTime> steps;
};

// Collective. By rank, on rank 0; empty on the others.
std::vector<RankTrace> GatherTraces(const std::vector<StepTime>& steps, collectives::Job& job);
// JSON; one process a rank, with a track each for the host, the device and collectives. Ranks of one host share a
// clock; each host's begins with the first step of its ranks.
std::string ChromeTrace(const std::vector<RankTrace>& ranks);

}  // namespace hlorun::cli
