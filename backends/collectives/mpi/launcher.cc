#include "backends/collectives/mpi/launcher.h"

#include <cstdlib>

namespace hlorun::collectives {
namespace {

// The variables that launchers set. Open MPI's own come first: under Slurm with its plugin both are set.
struct Variable {
  const char* name;
  const char* mpi;
};
constexpr Variable kVariables[] = {
    {"OMPI_COMM_WORLD_SIZE", "openmpi"},
    {"PMI_SIZE", "mpich"},
    {"PMIX_RANK", "openmpi"},
    {"SLURM_NTASKS", "mpich"},
};

}  // namespace

Launcher DetectLauncher() {
  for (const Variable& variable : kVariables) {
    const char* value = std::getenv(variable.name);
    if (value == nullptr) continue;
    const std::string name = variable.name;
    // A plain shell in a Slurm allocation has SLURM_NTASKS too; only srun's tasks have a step.
    if (name == "SLURM_NTASKS" && std::getenv("SLURM_STEP_ID") == nullptr) continue;
    return {variable.mpi, name == "PMIX_RANK" ? 1 : std::atoi(value), name};
  }
  return {};
}

}  // namespace hlorun::collectives
