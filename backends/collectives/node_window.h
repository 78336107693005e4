// NodeWindow: how the ranks of one node meet without messages.
//
// Each pair of ranks has lines of its own in one shared mapping; to meet is to write a line for each of the others and
// to wait for theirs. A line carries a note: where the operands lie in the ranks' shared heaps. Operands elsewhere go
// through slots, two for each rank: a rank fills one while the others read the other.
//
// A rank is one thread here.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backends/collectives/shared_heap.h"
#include "backends/collectives/transport.h"

namespace hlorun::collectives {

class NodeWindow {
 public:
  static constexpr int64_t kSlotBytes = 256 << 10;
  static constexpr int kMaxRanks = 64;

  // What another process of the node needs to map a window.
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

  // Where this rank says how its heap is opened, and reads how the others' are.
  std::span<HeapAddress> heap_addresses() const;
  void set_heap(std::shared_ptr<SharedHeap> heap) { heap_ = std::move(heap); }
  const std::shared_ptr<SharedHeap>& heap() const { return heap_; }

  // What a rank tells those that it meets: which collective this is, and where its operand and result lie in its heap
  // (-1: elsewhere).
  struct Note {
    int32_t kind = 0, slot = 0;
    int64_t bytes = 0, in = -1, out = -1;
  };
  // Collective over `ranks` (own one included or not): posts the note to all others, waits for theirs, and returns them
  // in `notes`, in order, with this rank's own. Whatever a rank wrote before it met, those that it met see. Throws
  // Error kFailedPrecondition when a rank came for another collective.
  void Meet(std::span<const int64_t> ranks, const Note& note, std::span<Note> notes, Transport& transport);

  // Writes this rank's piece number `step` into a slot; reads those of the others.
  using Fill = std::function<void(std::byte* slot, int64_t step)>;
  using Read = std::function<void(std::span<const std::byte* const> slots, int64_t step)>;
  // Collective over the group (ranks, in group order): `steps` times, everyone fills its slot, meets the others, and
  // reads all slots; the one at this rank's own position is the one that it filled.
  void Exchange(std::span<const int64_t> group, int64_t steps, const Note& note, const Fill& fill, const Read& read,
                Transport& transport);

 private:
  struct Line;
  struct Post;
  NodeWindow(std::byte* base, size_t bytes, int descriptor, int rank, int ranks);
  Line& LineOf(int64_t from, int64_t to, uint64_t number) const;
  std::atomic<uint64_t>& ReadUpTo(int64_t reader, int64_t writer) const;
  std::byte* SlotOf(int64_t rank, int slot) const;
  void WaitUntilRead(Post& post, Transport& transport);
  template <typename Done>
  void Wait(Transport& transport, Done&& done) const;

  std::byte* base_;
  size_t bytes_;
  int descriptor_;  // -1: another process's
  int rank_, ranks_;
  bool has_own_core_;  // no rank waits for the core that this one would spin on
  std::shared_ptr<SharedHeap> heap_;
  int next_slot_ = 0;
  std::vector<Post> posts_;    // what lies in this rank's slots, and for whom
  std::vector<uint64_t> met_;  // how often each rank was met
};

}  // namespace hlorun::collectives
