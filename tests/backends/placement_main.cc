// Prints what PlaceProcess decided, for tests under a launcher: "rank 1 of 2: 1 cores (1) POCL_MAX_PTHREAD_COUNT=1".
#include <cstdio>
#include <cstdlib>

#include "backends/topology/placement.h"

int main() {
  const hlorun::topology::Placement p = hlorun::topology::PlaceProcess();
  std::printf("rank %d of %d: %d cores (%s)%s, now %s, POCL_MAX_PTHREAD_COUNT=%s\n", p.local_rank, p.local_size,
              p.cores, p.cpus.c_str(), p.bound_by_launcher ? " as bound" : "", hlorun::topology::AllowedCores().c_str(),
              std::getenv("POCL_MAX_PTHREAD_COUNT"));
  return 0;
}
