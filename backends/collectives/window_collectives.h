// The collectives of a group whose ranks share a NodeWindow: operands go through its slots piece by piece, everyone reads
// what it needs of the others' and reduces it itself. One pass over memory, no messages.
//
// Arguments are Communicator's; `me` is this device's position in the group. Reductions associate as everywhere else.
#pragma once

#include "backends/collectives/communicator.h"
#include "backends/collectives/node_window.h"

namespace hlorun::collectives {

struct WindowGroup {
  NodeWindow& window;
  Transport& transport;
  std::span<const int64_t> ranks;
  int64_t me;
};

void WindowAllReduce(const WindowGroup& group, std::span<const std::byte> in, std::span<std::byte> out, const Reduction& reduction);
void WindowAllGather(const WindowGroup& group, std::span<const std::byte> in, std::span<std::byte> out);
void WindowReduceScatter(const WindowGroup& group, std::span<const std::byte> in, std::span<std::byte> out,
                         const Reduction& reduction);
void WindowAllToAll(const WindowGroup& group, std::span<const std::byte> in, std::span<std::byte> out);

}  // namespace hlorun::collectives
