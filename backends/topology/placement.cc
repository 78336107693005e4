#include "backends/topology/placement.h"

#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <vector>

namespace hlorun::topology {
namespace {

// A launcher's variables for this process's number among those on its node, and their count.
struct LocalRankRow {
  const char* rank;
  const char* size;
};
constexpr LocalRankRow kLocalRanks[] = {
    {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MPI_LOCALRANKID", "MPI_LOCALNRANKS"},  // MPICH and Intel MPI
    {"SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"},
};

// Set by Open MPI exactly when the user gives --bind-to (measured with 4.1); "none" asks for no binding, so a share is
// taken.
constexpr const char* kOpenMpiBinding[] = {"OMPI_MCA_hwloc_base_binding_policy",
                                           "PRTE_MCA_hwloc_default_binding_policy"};

// Process names of launchers' daemons, whose own binding is what the job was given.
constexpr const char* kLaunchers[] = {"mpirun", "mpiexec", "orted",           "orterun",
                                      "prted",  "prterun", "hydra_pmi_proxy", "slurmstepd"};

std::optional<int> Number(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text < '0' || *text > '9') return std::nullopt;
  return std::atoi(text);  // SLURM writes "4(x2)": the node's own count leads
}

class CpuSet {
 public:
  CpuSet() : set_(hwloc_bitmap_alloc()) {}
  ~CpuSet() { hwloc_bitmap_free(set_); }
  CpuSet(const CpuSet&) = delete;
  CpuSet& operator=(const CpuSet&) = delete;
  hwloc_bitmap_t get() const { return set_; }
  int Count() const { return std::max(0, hwloc_bitmap_weight(set_)); }
  // Whether it is 0 .. Count() - 1.
  bool CountsFromZero() const { return Count() > 0 && hwloc_bitmap_last(set_) == Count() - 1; }
  std::string Text() const {
    char* text = nullptr;
    hwloc_bitmap_list_asprintf(&text, set_);
    std::string list = text != nullptr ? text : "";
    std::free(text);
    return list;
  }

 private:
  hwloc_bitmap_t set_;
};

struct Topology {
  Topology() {
    hwloc_topology_init(&topology);
    hwloc_topology_load(topology);
  }
  ~Topology() { hwloc_topology_destroy(topology); }
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;
  hwloc_topology_t topology = nullptr;
};

// Parent and name of a process, from "pid (name) state parent ...".
struct ProcessStat {
  pid_t parent = 0;
  std::string name;
};

ProcessStat StatOf(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  std::getline(file, line);
  const size_t open = line.find('('), close = line.rfind(')');
  if (open == std::string::npos || close == std::string::npos) return {};
  std::istringstream rest(line.substr(close + 1));
  std::string state;
  ProcessStat stat;
  rest >> state >> stat.parent;
  stat.name = line.substr(open + 1, close - open - 1);
  return stat;
}

// The nearest ancestor that is a launcher's process, or 0.
pid_t LauncherProcess() {
  for (pid_t process = getppid(); process > 1;) {
    const ProcessStat stat = StatOf(process);
    for (const char* launcher : kLaunchers) {
      if (stat.name.compare(0, std::string(launcher).size(), launcher) == 0) return process;
    }
    process = stat.parent;
  }
  return 0;
}

bool AskedForBinding(const CpuSet& own, const CpuSet& launchers) {
  if (std::getenv("OMPI_COMM_WORLD_LOCAL_RANK") != nullptr) {
    return std::any_of(std::begin(kOpenMpiBinding), std::end(kOpenMpiBinding), [](const char* variable) {
      const char* policy = std::getenv(variable);
      return policy != nullptr && std::string(policy) != "none";
    });
  }
  // Other launchers bind only when asked to.
  return hwloc_bitmap_isincluded(own.get(), launchers.get()) != 0 && !hwloc_bitmap_isequal(own.get(), launchers.get());
}

// Whole cores of `allowed`, in the machine's order; each is the set of its hardware threads.
std::vector<hwloc_const_cpuset_t> CoresIn(hwloc_topology_t topology, const CpuSet& allowed) {
  std::vector<hwloc_const_cpuset_t> cores;
  for (hwloc_obj_t core = nullptr; (core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)) != nullptr;) {
    if (hwloc_bitmap_intersects(core->cpuset, allowed.get()) != 0) cores.push_back(core->cpuset);
  }
  if (!cores.empty()) return cores;
  for (hwloc_obj_t unit = nullptr; (unit = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, unit)) != nullptr;) {
    if (hwloc_bitmap_intersects(unit->cpuset, allowed.get()) != 0) cores.push_back(unit->cpuset);
  }
  return cores;
}

// Rank r of n gets cores [r * c / n, (r + 1) * c / n); with fewer cores than ranks, one core, shared.
void TakeShare(hwloc_topology_t topology, const Placement& placement, const CpuSet& allowed, const CpuSet& share) {
  const auto cores = CoresIn(topology, allowed);
  if (cores.empty()) {
    hwloc_bitmap_copy(share.get(), allowed.get());
    return;
  }
  const size_t count = cores.size(), size = static_cast<size_t>(placement.local_size);
  const size_t rank = static_cast<size_t>(placement.local_rank);
  const size_t first = count >= size ? rank * count / size : rank % count;
  const size_t last = count >= size ? (rank + 1) * count / size : first + 1;
  for (size_t c = first; c < last; ++c) hwloc_bitmap_or(share.get(), share.get(), cores[c]);
  hwloc_bitmap_and(share.get(), share.get(), allowed.get());
}

}  // namespace

Placement PlaceProcess() {
  const Topology machine;
  hwloc_topology_t topology = machine.topology;
  Placement placement;
  for (const LocalRankRow& row : kLocalRanks) {
    const auto rank = Number(row.rank), size = Number(row.size);
    if (!rank.has_value() || !size.has_value() || *rank < 0 || *rank >= *size) continue;
    placement.local_rank = *rank;
    placement.local_size = *size;
    break;
  }
  CpuSet own, allowed, share;
  hwloc_get_cpubind(topology, own.get(), HWLOC_CPUBIND_PROCESS);
  hwloc_bitmap_copy(share.get(), own.get());
  const pid_t launcher =
      placement.local_size > 1 || std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr ? LauncherProcess() : 0;
  if (launcher != 0 && hwloc_get_proc_cpubind(topology, launcher, allowed.get(), 0) == 0) {
    placement.bound_by_launcher = AskedForBinding(own, allowed);
    if (!placement.bound_by_launcher) {
      hwloc_bitmap_zero(share.get());
      TakeShare(topology, placement, allowed, share);
      if (hwloc_set_cpubind(topology, share.get(), HWLOC_CPUBIND_PROCESS) != 0)
        hwloc_bitmap_copy(share.get(), own.get());
    }
  }
  placement.cores = std::max(1, share.Count());
  placement.cpus = share.Text();
  // PoCL starts a thread for each core of the machine whatever the binding. What the user has set stays.
  setenv("POCL_MAX_PTHREAD_COUNT", std::to_string(placement.cores).c_str(), 0);
  // Its threads sleep between runs, and Linux wakes several on one core: the first kernel then has that core alone for
  // milliseconds. Pinned they are from core 0 on, in every process, so only who has the node for itself does it.
  if (placement.local_size == 1 && share.CountsFromZero()) setenv("POCL_AFFINITY", "1", 0);
  return placement;
}

std::string AllowedCores() {
  const Topology machine;
  const CpuSet own;
  hwloc_get_cpubind(machine.topology, own.get(), HWLOC_CPUBIND_PROCESS);
  return own.Text();
}

}  // namespace hlorun::topology
