// What all ranks of a job must have in common, checked before any of it is used.
#pragma once

#include <string>

#include "backends/collectives/job.h"
#include "driver/cli/flags.h"

namespace hlorun::cli {

// Collective. Throws Error naming the flag, unless all ranks were given the same flags; those that concern one process
// alone (its device, its folders, what it prints) may differ.
void CheckSameFlags(const Flags& flags, collectives::Job& job);

// Collective. Rank 0's file, on all ranks. A rank that was given another path must find the same bytes there.
std::string ReadSameFile(const std::string& path, collectives::Job& job);

// Collective. Throws Error unless the ranks' texts are the same module.
void CheckSameModule(const std::string& text, collectives::Job& job);

}  // namespace hlorun::cli
