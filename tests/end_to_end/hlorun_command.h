// hlorun as a user starts it: alone, or as ranks under mpirun.
#pragma once

#include <string>

#include "tests/end_to_end/command.h"

namespace hlorun::testing_support {

// `environment`: "NAME=VALUE ...". One that hangs is ended after 100 s.
CommandResult Hlorun(const std::string& arguments, const std::string& environment = "");
CommandResult HlorunRanks(int ranks, const std::string& arguments);

// The words before a command that several ranks run.
std::string Mpirun(int ranks);

}  // namespace hlorun::testing_support
