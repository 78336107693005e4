#include "tests/end_to_end/hlorun_command.h"

namespace hlorun::testing_support {

CommandResult Hlorun(const std::string& arguments, const std::string& environment) {
  return RunCommand(environment + " timeout 100 " HLORUN_BINARY " " + arguments);
}

CommandResult HlorunRanks(int ranks, const std::string& arguments) {
  return RunCommand(Mpirun(ranks) + HLORUN_BINARY " " + arguments);
}

std::string Mpirun(int ranks) {
  return "timeout 100 mpirun --allow-run-as-root --oversubscribe --bind-to none -n " + std::to_string(ranks) + " ";
}

}  // namespace hlorun::testing_support
