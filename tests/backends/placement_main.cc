// Prints what PlaceProcess decided, for tests under a launcher: "rank 1 of 2: 1 cores (1), now 1,
// POCL_MAX_PTHREAD_COUNT=1, POCL_AFFINITY=-".
#include <cstdio>
#include <cstdlib>

#include "backends/topology/placement.h"

int main() {
  const hlorun::topology::Placement p = hlorun::topology::PlaceProcess();
  const char* affinity = std::getenv("POCL_AFFINITY");
  std::printf("rank %d of %d: %d cores (%s)%s, now %s, POCL_MAX_PTHREAD_COUNT=%s, POCL_AFFINITY=%s\n", p.local_rank,
              p.local_size, p.cores, p.cpus.c_str(), p.bound_by_launcher ? " as bound" : "",
              hlorun::topology::AllowedCores().c_str(), std::getenv("POCL_MAX_PTHREAD_COUNT"),
              affinity != nullptr ? affinity : "-");
  return 0;
}
