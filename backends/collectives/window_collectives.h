// The collectives of a group whose ranks share a NodeWindow.
//
// Operands that lie in the ranks' shared heaps are read and written where they are: each rank reduces its part of all
// operands and writes it into all results, or copies its operand into the others' results; once over memory, no
// messages. Operands elsewhere, and short ones, go through the window's slots.
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

void WindowAllReduce(const WindowGroup& group, std::span<const std::byte> in, std::span<std::byte> out,
                     const Reduction& reduction);
void WindowAllGather(const WindowGroup& group, std::span<const std::byte> in, std::span<std::byte> out);
void WindowReduceScatter(const WindowGroup& group, std::span<const std::byte> in, std::span<std::byte> out,
                         const Reduction& reduction);
void WindowAllToAll(const WindowGroup& group, std::span<const std::byte> in, std::span<std::byte> out);
// Positions of `group` from which this rank receives and to which it sends; -1: none.
void WindowPermute(const WindowGroup& group, int64_t source, int64_t target, std::span<const std::byte> in,
                   std::span<std::byte> out);

}  // namespace hlorun::collectives
