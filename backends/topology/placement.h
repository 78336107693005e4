// Placement: which cores this process may use, decided before the OpenCL loader is loaded, because the runtimes count
// cores when they start.
//
// Open MPI pins a rank to one core while PoCL still counts all of them (measured: 104 ms against 51 for the same work), and
// PoCL ignores the affinity mask for its thread count.
#pragma once

#include <string>

namespace hlorun::topology {

// Under a launcher, binds this process to its share of the node's allowed cores, unless the user asked for a binding
// (mpirun --bind-to core and the like; "none" is no binding). Then tells PoCL how many threads to start
// (POCL_MAX_PTHREAD_COUNT, unless set). Never throws: without hwloc's help the process runs where it is.
// Call once, before any other thread exists.
void PlaceProcess();

// The cores that this process may run on, as a list: "0-3,8".
std::string AllowedCores();

// The ranks of this node, from the launcher's environment: {0, 1} without one.
struct LocalRank {
  int rank = 0;
  int count = 1;
};
LocalRank LocalRankFromEnvironment();

}  // namespace hlorun::topology
