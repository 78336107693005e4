#include "backends/topology/placement.h"

#include <hwloc.h>

#include <cstdlib>
#include <memory>
#include <optional>

namespace hlorun::topology {
namespace {

struct TopologyDestroy {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, TopologyDestroy>;

struct BitmapFree {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, BitmapFree>;

Topology LoadTopology() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return nullptr;
  Topology owned(topology);
  if (hwloc_topology_load(topology) != 0) return nullptr;
  return owned;
}

std::optional<int> Number(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::atoi(value);
}

// Open MPI hands its command line's --bind-to on as this MCA parameter.
bool UserBound() {
  const char* policy = std::getenv("OMPI_MCA_hwloc_base_binding_policy");
  return policy != nullptr && std::string(policy) != "none";
}

// The i-th of n near-equal runs of the cores in `allowed`, hyperthreads of a core together; at least one core.
Bitmap ShareOf(hwloc_topology_t topology, hwloc_const_cpuset_t allowed, LocalRank local) {
  const int units = hwloc_get_nbobjs_inside_cpuset_by_type(topology, allowed, HWLOC_OBJ_CORE);
  const hwloc_obj_type_t type = units > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  const int count = std::max(1, hwloc_get_nbobjs_inside_cpuset_by_type(topology, allowed, type));
  int begin = local.rank * count / local.count;
  const int end = std::max(begin + 1, (local.rank + 1) * count / local.count);
  Bitmap share(hwloc_bitmap_alloc());
  for (; begin < end; ++begin) {
    const hwloc_obj_t unit = hwloc_get_obj_inside_cpuset_by_type(topology, allowed, type, static_cast<unsigned>(begin % count));
    if (unit != nullptr) hwloc_bitmap_or(share.get(), share.get(), unit->cpuset);
  }
  hwloc_bitmap_and(share.get(), share.get(), allowed);
  return share;
}

Bitmap CurrentBinding(hwloc_topology_t topology) {
  Bitmap bound(hwloc_bitmap_alloc());
  if (hwloc_get_cpubind(topology, bound.get(), HWLOC_CPUBIND_PROCESS) != 0) {
    hwloc_bitmap_copy(bound.get(), hwloc_topology_get_allowed_cpuset(topology));
  }
  return bound;
}

}  // namespace

LocalRank LocalRankFromEnvironment() {
  // Open MPI, MPICH's Hydra, Slurm.
  for (const auto& [rank, count] : {std::pair{"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                                    std::pair{"MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
                                    std::pair{"SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"}}) {
    const std::optional<int> r = Number(rank), n = Number(count);
    if (r && n && *n > 0 && *r >= 0 && *r < *n) return {*r, *n};
  }
  return {};
}

void PlaceProcess() {
  const Topology topology = LoadTopology();
  if (topology == nullptr) return;
  if (Number("OMPI_COMM_WORLD_SIZE") || LocalRankFromEnvironment().count > 1) {
    if (!UserBound()) {
      const Bitmap share =
          ShareOf(topology.get(), hwloc_topology_get_allowed_cpuset(topology.get()), LocalRankFromEnvironment());
      // Failure leaves the launcher's binding, which is slower but right.
      hwloc_set_cpubind(topology.get(), share.get(), HWLOC_CPUBIND_PROCESS);
    }
  }
  const Bitmap bound = CurrentBinding(topology.get());
  const int threads = hwloc_bitmap_weight(bound.get());
  if (threads > 0) setenv("POCL_MAX_PTHREAD_COUNT", std::to_string(threads).c_str(), 0);
}

std::string AllowedCores() {
  const Topology topology = LoadTopology();
  if (topology == nullptr) return "unknown";
  const Bitmap bound = CurrentBinding(topology.get());
  char* text = nullptr;
  if (hwloc_bitmap_list_asprintf(&text, bound.get()) < 0) return "unknown";
  std::string list = text;
  std::free(text);
  return list;
}

}  // namespace hlorun::topology
