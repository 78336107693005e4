// One `hlorun FILE` from flags to exit code.
#pragma once

#include "backends/collectives/job.h"
#include "driver/cli/flags.h"

namespace hlorun::cli {

// Exit codes: equal or nothing to compare, outputs differ, trouble.
inline constexpr int kExitEqual = 0;
inline constexpr int kExitMismatch = 1;
inline constexpr int kExitTrouble = 2;

// Throws Error for trouble.
int RunSession(const Flags& flags, const std::shared_ptr<collectives::Job>& job);

}  // namespace hlorun::cli
