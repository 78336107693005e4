#include "passes/spmd/group_positions.h"

#include <algorithm>

#include "hlo/device_groups.h"
#include "hlo/module.h"

namespace hlorun::passes::spmd {

hlo::Dims GroupPositions::Ahead(int64_t distance, int64_t unit) const {
  hlo::Dims starts;
  for (const int64_t position : of_device) starts.push_back((position + distance) % group_size * unit);
  return starts;
}

std::optional<GroupPositions> PositionsIn(const hlo::Instruction& collective) {
  const hlo::Module& module = *collective.module();
  const auto& attributes = collective.As<hlo::attr::Collective>();
  // The size of such groups is not in the text.
  if (attributes.channel_id && !attributes.use_global_device_ids) return std::nullopt;
  GroupPositions positions;
  positions.groups = hlo::DeviceGroups(collective);
  positions.group_size = positions.groups.empty() ? 0 : static_cast<int64_t>(positions.groups[0].size());
  positions.of_device.assign(static_cast<size_t>(module.replica_count * module.num_partitions), -1);
  for (const std::vector<int64_t>& group : positions.groups) {
    if (static_cast<int64_t>(group.size()) != positions.group_size) return std::nullopt;
    for (size_t i = 0; i < group.size(); ++i) {
      if (static_cast<size_t>(group[i]) >= positions.of_device.size()) return std::nullopt;
      positions.of_device[static_cast<size_t>(group[i])] = static_cast<int64_t>(i);
    }
  }
  const bool leaves_out =
      std::find(positions.of_device.begin(), positions.of_device.end(), -1) != positions.of_device.end();
  if (positions.group_size < 2 || leaves_out) return std::nullopt;
  return positions;
}

}  // namespace hlorun::passes::spmd
