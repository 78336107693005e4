// SharedHeap: memory of this process that the other ranks of its node read and write in place.
//
// Collectives whose operands lie in it copy once, straight from where a kernel left them to where the next one wants
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace hlorun::collectives {

// What another process of the node needs to map a process's heap.
struct HeapAddress {
  int64_t process = 0, descriptor = -1, tag = 0, bytes = 0;
};

// A sparse mapping as large as the node's memory, of which blocks are handed out. Thread-safe, but Join().
class SharedHeap {
 public:
  // Null where the system refuses one.
  static std::shared_ptr<SharedHeap> Create();
  ~SharedHeap();
  SharedHeap(const SharedHeap&) = delete;
  SharedHeap& operator=(const SharedHeap&) = delete;

  HeapAddress address() const;
  // Maps the other ranks' heaps, of all ranks in order; false where one cannot be opened.
  bool Join(std::span<const HeapAddress> ranks, int own_rank);

  // Zeros, page-aligned; from a huge page's size on aligned to and made of huge pages, where the system has them. Null
  // when there is no room.
  std::byte* Allocate(size_t bytes);
  void Free(std::byte* block, size_t bytes);

  // Where memory of this process lies in the heap; -1: elsewhere.
  int64_t OffsetOf(const std::byte* memory) const {
    return memory >= base_ && memory < base_ + bytes_ ? memory - base_ : -1;
  }
  std::byte* At(int rank, int64_t offset) const { return bases_[static_cast<size_t>(rank)] + offset; }

 private:
  SharedHeap(int descriptor, std::byte* base, size_t bytes);
  int64_t Reserve(size_t bytes, size_t alignment);

  int descriptor_;
  std::byte* base_;
  size_t bytes_;
  int64_t tag_;
  std::vector<std::byte*> bases_;  // by rank
  std::vector<std::pair<std::byte*, size_t>> mapped_;
  std::mutex mutex_;
  std::map<int64_t, int64_t> free_;  // offset -> bytes; neighbours are joined
};

}  // namespace hlorun::collectives
