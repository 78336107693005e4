#include "hlo/collective_checks.h"

#include <unordered_set>

#include "hlo/error.h"

namespace hlorun::hlo {
namespace {

// What the numbers in a collective's groups count, and how many there are. XLA's modes: without a channel, replicas;
// with one, partitions for the permuting collectives and replicas (of all partitions) for the reducing ones; with
// use_global_device_ids, devices.
struct IdSpace {
  std::string_view name;
  int64_t count;  // 0: unknown
};

// An annotated module does not say for how many devices it is: whoever partitions it does.
bool IsUnpartitioned(const Module& module) { return module.replica_count == 1 && module.num_partitions == 1; }

IdSpace IdSpaceOf(const Instruction& instruction, const attr::Collective& collective, const Module& module) {
  if (collective.use_global_device_ids && !collective.channel_id) Invalid("use_global_device_ids needs a channel_id");
  if (IsUnpartitioned(module)) return {"devices", 0};
  if (collective.use_global_device_ids) {
    return {"devices", module.replica_count * module.num_partitions};
  }
  const bool permutes = instruction.Is(Opcode::kAllToAll) || instruction.Is(Opcode::kCollectiveBroadcast) ||
                        instruction.Is(Opcode::kRaggedAllToAll);
  if (collective.channel_id && permutes) return {"partitions", module.num_partitions};
  return {"replicas", module.replica_count};
}

void CheckGroups(const Instruction& instruction, const attr::Collective& collective, const Module& module) {
  const IdSpace space = IdSpaceOf(instruction, collective, module);
  const std::vector<std::vector<int64_t>> groups = collective.replica_groups.Expanded();
  if (groups.empty()) return;  // one group of all
  std::unordered_set<int64_t> seen;
  for (const std::vector<int64_t>& group : groups) {
    if (group.empty()) Invalid("a group of replica_groups is empty");
    for (int64_t id : group) {
      if (id < 0 || (space.count > 0 && id >= space.count)) {
        Invalid("replica_groups names {}, but the module has {} {}", id, space.count, space.name);
      }
      if (!seen.insert(id).second) Invalid("replica_groups names {} twice", id);
    }
  }
  const bool may_leave_out = instruction.Is(Opcode::kCollectiveBroadcast) || space.count == 0;
  if (!may_leave_out && static_cast<int64_t>(seen.size()) != space.count) {
    Invalid("replica_groups names {} of the module's {} {}: each must be in one group", seen.size(), space.count,
            space.name);
  }
  const bool uniform = !instruction.Is(Opcode::kAllReduce) && !instruction.Is(Opcode::kAllReduceStart) &&
                       !instruction.Is(Opcode::kCollectiveBroadcast);
  for (const std::vector<int64_t>& group : groups) {
    if (uniform && group.size() != groups.front().size()) Invalid("the groups of replica_groups differ in size");
  }
}

void CheckPairs(const attr::CollectivePermute& permute, const Module& module) {
  const int64_t count = permute.channel_id ? module.num_partitions : module.replica_count;
  const std::string_view name = permute.channel_id ? "partitions" : "replicas";
  std::unordered_set<int64_t> sources, targets;
  for (const auto& [source, target] : permute.source_target_pairs) {
    for (int64_t id : {source, target}) {
      if (id < 0 || (id >= count && !IsUnpartitioned(module)))
        Invalid("source_target_pairs names {}, but the module has {} {}", id, count, name);
    }
    if (!sources.insert(source).second) Invalid("source_target_pairs sends from {} twice", source);
    if (!targets.insert(target).second) Invalid("source_target_pairs sends to {} twice", target);
  }
}

}  // namespace

void CheckCollective(const Instruction& instruction, const Module& module) {
  if (const auto* collective = std::get_if<attr::Collective>(&instruction.attributes())) {
    CheckGroups(instruction, *collective, module);
  } else if (const auto* permute = std::get_if<attr::CollectivePermute>(&instruction.attributes())) {
    CheckPairs(*permute, module);
  }
}

}  // namespace hlorun::hlo
