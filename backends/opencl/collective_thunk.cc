#include "backends/opencl/collective_thunk.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "hlo/builder.h"
#include "hlo/error.h"
#include "hlo/module.h"

namespace hlorun::opencl {
namespace {

using hlo::Instruction;
using hlo::Opcode;

struct Entry {
  Opcode opcode;
  CollectiveKind kind;
  // With a channel, ids name replicas of all partitions (reducing and gathering ops) or partitions (moving ones).
  bool moves;
};
constexpr std::array kCollectives = {
    Entry{Opcode::kAllReduce, CollectiveKind::kAllReduce, false},
    Entry{Opcode::kAllGather, CollectiveKind::kAllGather, false},
    Entry{Opcode::kReduceScatter, CollectiveKind::kReduceScatter, false},
    Entry{Opcode::kAllToAll, CollectiveKind::kAllToAll, true},
    Entry{Opcode::kCollectivePermute, CollectiveKind::kCollectivePermute, true},
    Entry{Opcode::kCollectiveBroadcast, CollectiveKind::kCollectiveBroadcast, true},
    Entry{Opcode::kRaggedAllToAll, CollectiveKind::kRaggedAllToAll, true},
};

// Ids as written -> groups of device numbers (replica * partitions + partition).
std::vector<std::vector<int64_t>> DeviceGroups(const hlo::attr::Collective& collective, bool moves, int64_t replicas,
                                               int64_t partitions) {
  const bool by_device = collective.use_global_device_ids;
  const bool by_channel = collective.channel_id.has_value();
  std::vector<std::vector<int64_t>> groups = collective.replica_groups.Expanded();
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

std::vector<std::pair<int64_t, int64_t>> DevicePairs(const hlo::attr::CollectivePermute& permute, int64_t replicas,
                                                     int64_t partitions) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  const bool by_partition = permute.channel_id.has_value();
  for (const auto& [source, target] : permute.source_target_pairs) {
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

}  // namespace

CollectiveThunk MakeCollectiveThunk(const Instruction& instruction) {
  const auto entry = std::find_if(kCollectives.begin(), kCollectives.end(),
                                  [&](const Entry& e) { return e.opcode == instruction.opcode(); });
  if (entry == kCollectives.end()) {
    Fail(ErrorCode::kUnimplemented, "%{}: {} does not run on devices", instruction.name(),
         hlo::OpcodeName(instruction.opcode()));
  }
  const hlo::Module& module = *instruction.module();
  CollectiveThunk thunk;
  thunk.kind = entry->kind;
  if (instruction.Is(Opcode::kCollectivePermute)) {
    thunk.pairs =
        DevicePairs(instruction.As<hlo::attr::CollectivePermute>(), module.replica_count, module.num_partitions);
  } else {
    const auto& collective = instruction.As<hlo::attr::Collective>();
    thunk.groups = DeviceGroups(collective, entry->moves, module.replica_count, module.num_partitions);
    thunk.dimension = collective.dimension.value_or(-1);
  }
  if (!instruction.called_computations().empty()) {
    // A reducer that is no single opcode gets a kernel from the plan builder.
    thunk.reduction = hlo::ReducerOpcode(*instruction.called()).value_or(Opcode::kMap);
  }
  for (const Instruction* operand : instruction.operands()) thunk.operand_shapes.push_back(operand->shape());
  thunk.result_shapes = hlo::FlattenShape(instruction.shape());
  return thunk;
}

}  // namespace hlorun::opencl
