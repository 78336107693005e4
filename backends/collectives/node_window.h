// NodeWindow: memory that the ranks of one node share, and the collectives that go through it.
//
// Every rank has two slots in one mapping. It fills a slot with the next piece of its operand and tells the others of the
// group, who read it where it is: a piece stays in the caches on its way, and no message is sent. With two slots a rank
// fills one while the others read the other.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backends/collectives/transport.h"

namespace hlorun::collectives {

class NodeWindow {
 public:
  static constexpr int64_t kSlotBytes = 256 << 10;
  static constexpr int kMaxRanks = 64;

  // What another process of the node needs to map a window: "boot-id pid descriptor".
  struct Address {
    char node[40] = "";
    int64_t process = 0, descriptor = -1, tag = 0;
  };
  // A new window for `ranks` ranks; null where the system refuses one.
  static std::unique_ptr<NodeWindow> Create(int rank, int ranks);
  // The window of another process; null where this one may not open it (another container, another user).
  static std::unique_ptr<NodeWindow> Open(const Address& address, int rank, int ranks);
  // The name of this process's node: equal for processes that share its memory.
  static Address Here();
  Address address() const;
  ~NodeWindow();
  NodeWindow(const NodeWindow&) = delete;
  NodeWindow& operator=(const NodeWindow&) = delete;

  // Writes this rank's piece number `step` into a slot; where piece `step` of another rank is read: `position` in the group.
  using Fill = std::function<void(std::byte* slot, int64_t step)>;
  using Read = std::function<void(std::span<const std::byte* const> slots, int64_t step)>;
  // Collective over the group (ranks, in group order): `steps` times, everyone fills its slot, waits for the others', and
  // reads all of them; the slot at this rank's own position is the one that it filled.
  void Exchange(std::span<const int64_t> group, int64_t steps, const Fill& fill, const Read& read, Transport& transport);

 private:
  struct Pair;  // what one rank has told another
  struct Post;
  NodeWindow(std::byte* base, size_t bytes, int descriptor, int rank, int ranks);
  static size_t BytesFor(int ranks);
  Pair& PairOf(int64_t from, int64_t to) const;
  std::byte* SlotOf(int64_t rank, int slot) const;
  void WaitFor(const std::function<bool()>& done, Transport& transport);

  std::byte* base_;
  size_t bytes_;
  int descriptor_;  // -1: another process's
  int rank_, ranks_;
  int next_slot_ = 0;
  std::vector<Post> posts_;         // what lies in this rank's slots, and for whom
  std::vector<uint64_t> received_;  // pieces taken from each rank
};

}  // namespace hlorun::collectives
