#include "hlo/device_groups.h"

#include <numeric>

#include "hlo/module.h"

namespace hlorun::hlo {
namespace {

bool MovesData(const Instruction& collective) {
  return collective.Is(Opcode::kAllToAll) || collective.Is(Opcode::kCollectiveBroadcast) ||
         collective.Is(Opcode::kRaggedAllToAll);
}

}  // namespace

std::vector<std::vector<int64_t>> DeviceGroups(const Instruction& collective) {
  const auto& attributes = collective.As<attr::Collective>();
  const int64_t replicas = collective.module()->replica_count, partitions = collective.module()->num_partitions;
  const bool moves = MovesData(collective), by_device = attributes.use_global_device_ids;
  const bool by_channel = attributes.channel_id.has_value();
  std::vector<std::vector<int64_t>> groups = attributes.replica_groups.Expanded();
  if (groups.empty() || (groups.size() == 1 && groups[0].empty())) {
    const int64_t ids = by_device ? replicas * partitions : by_channel && moves ? partitions : replicas;
    groups.assign(1, std::vector<int64_t>(static_cast<size_t>(ids)));
    std::iota(groups[0].begin(), groups[0].end(), 0);
  }
  if (by_device) return groups;
  std::vector<std::vector<int64_t>> devices;
  for (const std::vector<int64_t>& ids : groups) {
    if (by_channel && !moves) {
      std::vector<int64_t>& group = devices.emplace_back();
      for (const int64_t replica : ids) {
        for (int64_t p = 0; p < partitions; ++p) group.push_back(replica * partitions + p);
      }
      continue;
    }
    const int64_t copies = by_channel ? replicas : partitions;
    for (int64_t other = 0; other < copies; ++other) {
      std::vector<int64_t>& group = devices.emplace_back();
      for (const int64_t id : ids) group.push_back(by_channel ? other * partitions + id : id * partitions + other);
    }
  }
  return devices;
}

std::vector<std::pair<int64_t, int64_t>> DevicePairs(const Instruction& permute) {
  const auto& attributes = permute.As<attr::CollectivePermute>();
  const int64_t replicas = permute.module()->replica_count, partitions = permute.module()->num_partitions;
  const bool by_partition = attributes.channel_id.has_value();
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (const auto& [source, target] : attributes.source_target_pairs) {
    for (int64_t other = 0; other < (by_partition ? replicas : partitions); ++other) {
      if (by_partition) {
        pairs.push_back({other * partitions + source, other * partitions + target});
      } else {
        pairs.push_back({source * partitions + other, target * partitions + other});
      }
    }
  }
  return pairs;
}

}  // namespace hlorun::hlo
