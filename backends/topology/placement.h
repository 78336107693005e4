// Where a process runs: its share of the node's cores, taken before any OpenCL runtime counts them.
#pragma once

#include <string>

namespace hlorun::topology {

struct Placement {
  int local_rank = 0, local_size = 1;  // among this job's processes on this node
  int cores = 1;                       // that this process may use
  std::string cpus;                    // as a list: "0-3,8"
  bool bound_by_launcher = false;      // an explicit binding was found and kept
};

// Binds the process to its share and tells runtimes that do not look at the binding how many threads to start. Call
// once, before other threads exist and before anything touches OpenCL: runtimes count cores when they are loaded.
//
// Alone, a process keeps the cores it may use. Of several ranks on a node each takes its share of the launcher's cores,
// whole cores, neighbours together, whatever the launcher's default binding was (Open MPI binds each rank to one core);
// a binding that the user asked for (--bind-to, numactl in the command) is kept. Never fails: what the system refuses
// stays as it was.
Placement PlaceProcess();

// The cores that this process may use now, as a list: "0-3,8".
std::string AllowedCores();

}  // namespace hlorun::topology
