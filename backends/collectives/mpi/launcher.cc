#include "backends/collectives/mpi/launcher.h"

#include <cstdlib>

namespace hlorun::collectives {
namespace {

// The variables that launchers set. Open MPI's own come first: under Slurm with its plugin both are set.
struct Variable {
  const char* name;
  const char* rank;
  const char* local_rank;
  const char* mpi;
};
constexpr Variable kVariables[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "openmpi"},
    {"PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID", "mpich"},
    {"PMIX_RANK", "PMIX_RANK", "PMIX_LOCAL_RANK", "openmpi"},
    {"SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID", "mpich"},
};

int Number(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr ? std::atoi(value) : 0;
}

}  // namespace

Launcher DetectLauncher() {
  for (const Variable& variable : kVariables) {
    const char* value = std::getenv(variable.name);
    if (value == nullptr) continue;
    const std::string name = variable.name;
    // A plain shell in a Slurm allocation has SLURM_NTASKS too; only srun's tasks have a step.
    if (name == "SLURM_NTASKS" && std::getenv("SLURM_STEP_ID") == nullptr) continue;
    return {variable.mpi,
            name == "PMIX_RANK" ? 1 : std::atoi(value),
            Number(variable.rank),
            Number(variable.local_rank),
            name,
            variable.rank};
  }
  return {};
}

}  // namespace hlorun::collectives
