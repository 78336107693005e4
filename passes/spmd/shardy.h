// Shardy's attributes, as JAX writes them into frontend_attributes:
//   xla.sdy.meshes    {mesh = #sdy.mesh<["data"=4, "model"=2]>}
//   xla.sdy.sharding  #sdy.sharding<@mesh, [{"data", "model":(1)2}, {?}p1], replicated={"x"}, unreduced={"y"}>
//                     #sdy.sharding_per_value<[<@mesh, [{}, {"data"}]>, <@mesh, [{?}]>]>
//   xla.sdy.manual_axes  #sdy<manual_axes{"data"}>
// Throws Error with the text and the position where it is malformed.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hlorun::passes::spmd {

struct ShardyMesh {
  std::vector<std::pair<std::string, int64_t>> axes;
  std::vector<int64_t> device_ids;  // empty: iota
};
using ShardyMeshes = std::map<std::string, ShardyMesh>;

// An axis, or `size` devices of it behind the first `pre_size` ones (a sub-axis); size 0: the whole axis.
struct ShardyAxis {
  std::string name;
  int64_t pre_size = 1;
  int64_t size = 0;
};
struct ShardyDimension {
  std::vector<ShardyAxis> axes;
  bool open = false;
  int priority = 0;
};
struct ShardySharding {
  std::string mesh_name;  // empty: `mesh` was written in place
  ShardyMesh mesh;
  std::vector<ShardyDimension> dimensions;
  std::vector<ShardyAxis> replicated, unreduced;
};

ShardyMeshes ParseShardyMeshes(std::string_view text);
// Either form: one sharding, or one a value.
std::vector<ShardySharding> ParseShardyShardings(std::string_view text);
std::vector<std::string> ParseManualAxes(std::string_view text);

}  // namespace hlorun::passes::spmd
