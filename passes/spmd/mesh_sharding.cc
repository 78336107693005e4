#include "passes/spmd/mesh_sharding.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace hlorun::passes::spmd {

bool Contains(const AxisList& list, Axis axis) { return std::find(list.begin(), list.end(), axis) != list.end(); }

bool IsPrefix(const AxisList& prefix, const AxisList& list) {
  return prefix.size() <= list.size() && std::equal(prefix.begin(), prefix.end(), list.begin());
}

bool MeshSharding::IsReplicated() const {
  return partial.empty() && std::all_of(dims.begin(), dims.end(), [](const AxisList& d) { return d.empty(); });
}

bool MeshSharding::Uses(Axis axis) const {
  return Contains(partial, axis) || Contains(manual, axis) ||
         std::any_of(dims.begin(), dims.end(), [&](const AxisList& d) { return Contains(d, axis); });
}

std::string MeshSharding::ToString() const {
  std::string text = "[";
  for (size_t d = 0; d < dims.size(); ++d) text += fmt::format("{}{{{}}}", d > 0 ? ", " : "", fmt::join(dims[d], ","));
  text += "]";
  if (!partial.empty()) text += fmt::format(" partial{{{}}}", fmt::join(partial, ","));
  if (!manual.empty()) text += fmt::format(" manual{{{}}}", fmt::join(manual, ","));
  return text;
}

int64_t ShardCount(const Mesh& mesh, const MeshSharding& sharding, int64_t dimension) {
  return mesh.SizeOf(sharding.dims[static_cast<size_t>(dimension)]);
}

hlo::Shape LocalShape(const Mesh& mesh, const hlo::Shape& global, const MeshSharding& sharding) {
  hlo::Shape local = global;
  for (int64_t d = 0; d < global.rank(); ++d) {
    const int64_t count = ShardCount(mesh, sharding, d);
    local.mutable_dimensions()[static_cast<size_t>(d)] = (global.dimension(d) + count - 1) / count;
  }
  return local;
}

hlo::Sharding ToHloSharding(const Mesh& mesh, const MeshSharding& sharding) {
  hlo::Sharding result;
  AxisList order, rest;
  for (const AxisList& dim : sharding.dims) order.insert(order.end(), dim.begin(), dim.end());
  for (const Axis axis : mesh.AllAxes()) {
    if (!Contains(order, axis) && !Contains(sharding.manual, axis)) rest.push_back(axis);
  }
  if (order.empty() && sharding.manual.empty()) return result;
  if (order.empty() && rest.empty()) {
    result.kind = hlo::Sharding::Kind::kManual;
    return result;
  }
  result.kind = hlo::Sharding::Kind::kTiled;
  for (const AxisList& dim : sharding.dims) result.tile_dimensions.push_back(mesh.SizeOf(dim));
  order.insert(order.end(), sharding.manual.begin(), sharding.manual.end());
  if (!sharding.manual.empty()) {
    result.tile_dimensions.push_back(mesh.SizeOf(sharding.manual));
    result.last_tile_dims.push_back("manual");
  }
  order.insert(order.end(), rest.begin(), rest.end());
  if (!rest.empty() && sharding.manual.empty()) {
    result.tile_dimensions.push_back(mesh.SizeOf(rest));
    result.replicate_on_last_tile_dim = true;
  } else if (!rest.empty()) {
    result.tile_dimensions.push_back(mesh.SizeOf(rest));
    result.last_tile_dims.push_back("replicated");
  }
  if (!mesh.order().empty()) {
    result.devices.resize(static_cast<size_t>(mesh.device_count()));
    for (int64_t device = 0; device < mesh.device_count(); ++device) {
      result.devices[static_cast<size_t>(mesh.Coordinate(device, order))] = device;
    }
    return result;
  }
  // Iota form: runs of axes that stay together are one dimension of the iota.
  std::vector<AxisList> runs;
  for (const Axis axis : order) {
    if (!runs.empty() && runs.back().back() + 1 == axis) {
      runs.back().push_back(axis);
    } else {
      runs.push_back({axis});
    }
  }
  std::vector<int64_t> by_axis(runs.size());
  for (size_t i = 0; i < runs.size(); ++i) by_axis[i] = static_cast<int64_t>(i);
  std::sort(by_axis.begin(), by_axis.end(),
            [&](int64_t a, int64_t b) { return runs[static_cast<size_t>(a)][0] < runs[static_cast<size_t>(b)][0]; });
  result.iota_transpose_perm.resize(runs.size());
  for (size_t position = 0; position < by_axis.size(); ++position) {
    result.iota_reshape_dims.push_back(mesh.SizeOf(runs[static_cast<size_t>(by_axis[position])]));
    result.iota_transpose_perm[static_cast<size_t>(by_axis[position])] = static_cast<int64_t>(position);
  }
  if (std::is_sorted(result.iota_transpose_perm.begin(), result.iota_transpose_perm.end())) {
    result.iota_transpose_perm.clear();
    result.iota_reshape_dims = {mesh.device_count()};
  }
  return result;
}

}  // namespace hlorun::passes::spmd
