// What send, recv and their dones say about who exchanges what.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "hlo/instruction.h"

namespace hlorun::hlo {

// The devices that `transfer` (send, recv, or a done of theirs) connects, (source, target), from the frontend attribute
// _xla_send_recv_source_target_pairs="{{0,1},{1,2}}"; a transfer without it stays on its device, and one with the host
// has none. Numbers are global: replicas of a module with one partition, or partitions of one with one replica.
// Throws kInvalidArgument for text that is no such list, or that names devices that there are not.
using DevicePairs = std::vector<std::pair<int64_t, int64_t>>;
DevicePairs TransferPairs(const Instruction& transfer);

// The other end of `device` along `pairs`: where it sends to, or where it receives from; -1 for nowhere.
int64_t TargetOf(const DevicePairs& pairs, int64_t device);
int64_t SourceOf(const DevicePairs& pairs, int64_t device);

// The channel: the transfer's id, 0 when it has none.
int64_t ChannelOf(const Instruction& transfer);

}  // namespace hlorun::hlo
