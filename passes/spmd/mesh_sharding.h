// MeshSharding: how one array lies on a mesh. The only form of sharding that propagation and partitioning know; others
// convert at the edges (annotations.h).
#pragma once

#include <string>

#include "hlo/shape.h"
#include "hlo/sharding.h"
#include "passes/spmd/mesh.h"

namespace hlorun::passes::spmd {

// A dimension of size n that `axes` cut into k parts lies in parts of ceil(n / k) elements, the last ones padded; what
// the padding holds is undefined. Devices along axes that appear nowhere hold copies.
struct MeshSharding {
  std::vector<AxisList> dims;  // one list a dimension
  AxisList partial;            // ascending; the array's value is the reduction of the parts along these axes
  AxisList manual;             // ascending; the shape is already local along these axes (shard_map)

  static MeshSharding Replicated(int64_t rank) { return {std::vector<AxisList>(static_cast<size_t>(rank)), {}, {}}; }
  bool IsReplicated() const;   // no dimension is cut and nothing is partial
  bool Uses(Axis axis) const;  // in any of the three
  bool operator==(const MeshSharding&) const = default;

  std::string ToString() const;  // "[{0,1}, {}] partial{2}", for messages
};

int64_t ShardCount(const Mesh& mesh, const MeshSharding& sharding, int64_t dimension);
hlo::Shape LocalShape(const Mesh& mesh, const hlo::Shape& global, const MeshSharding& sharding);

// HloSharding v1, for dumps and for the driver. Partial axes have no v1 form and are dropped.
hlo::Sharding ToHloSharding(const Mesh& mesh, const MeshSharding& sharding);

bool Contains(const AxisList& list, Axis axis);
bool IsPrefix(const AxisList& prefix, const AxisList& list);

}  // namespace hlorun::passes::spmd
