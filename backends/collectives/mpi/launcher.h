// Which launcher, if any, started this process: from its environment, without touching MPI.
#pragma once

#include <string>

namespace hlorun::collectives {

struct Launcher {
  std::string mpi;            // "openmpi", "mpich", or "" when none
  int size = 1;               // ranks it started, where it says
  int rank = 0;               // of this process, where it says
  int local_rank = 0;         // among the processes on this host
  std::string signal;         // the variable that told
  std::string rank_variable;  // the one that holds the rank
};
Launcher DetectLauncher();

}  // namespace hlorun::collectives
