// What the replica groups of a collective mean in global device numbers (replica * num_partitions + partition).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "hlo/instruction.h"

namespace hlorun::hlo {

// The devices of each group, in group order, of an instruction that carries attr::Collective. By XLA's modes: ids are
// devices with use_global_device_ids; without a channel they are replicas; with one, partitions for the ops that move
// data between members, and replicas of all partitions for those that reduce or gather.
std::vector<std::vector<int64_t>> DeviceGroups(const Instruction& collective);

// The pairs of a collective-permute, likewise.
std::vector<std::pair<int64_t, int64_t>> DevicePairs(const Instruction& permute);

}  // namespace hlorun::hlo
