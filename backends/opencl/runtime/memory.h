// Device memory: one class over the two kinds there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "backends/collectives/shared_heap.h"
#include "backends/opencl/runtime/cl.h"

namespace hlorun::opencl {

class DeviceContext;
class Lane;
class MemoryPool;

// A block that a device can use: (base, offset, bytes). On devices that take plain pointers the base is host memory
// (page-aligned, huge pages advised, or the caller's own memory); elsewhere a cl_mem.
// Copies share the block. Immutable handle, thread-safe.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  // Zero-copy view of the caller's memory; `owner` keeps it alive. Only where the device takes plain pointers.
  static DeviceMemory Wrap(void* data, int64_t bytes, std::shared_ptr<const void> owner);

  int64_t bytes() const { return bytes_; }
  bool empty() const { return block_ == nullptr; }
  // Host address, or null for cl_mem.
  std::byte* host() const;
  cl_mem buffer() const;  // null for raw pointers
  // A cl_mem that starts at this memory's offset, as kernels take it: the block's own, or a sub-buffer that the block
  // keeps. The offset must be a multiple of the device's buffer alignment. Null for raw pointers.
  cl_mem argument() const;
  int64_t offset() const { return offset_; }
  // Where it is: equal, and what was made of one (a kernel's argument) is as good for the other. A cl_mem's address may
  // be another's later on, and so may that of its sub-buffers.
  struct Place {
    const void* base = nullptr;
    int64_t offset = 0, bytes = 0;
    uint64_t storage = 0;
    bool operator==(const Place&) const = default;
  };
  Place place() const;
  DeviceMemory Sub(int64_t offset, int64_t bytes) const;
  bool Overlaps(const DeviceMemory& other) const;
  // Memory that more than one array refers to, or that belongs to the caller, is never written even when an array of it
  // is donated. Sticks to the block.
  void MarkShared() const;
  bool shared() const;
  // Remembers that a run in `lane` has it for an argument, and whether no run in any other ever had. Sticks to the
  // block.
  void UsedIn(const Lane* lane) const;
  bool IsUsedOnlyIn(const Lane* lane) const;
  // Memory that somebody else owns (the caller, or a module its constants), of which dropping the last copy may run
  // code of the caller's; and whether this is the last.
  bool IsOfCaller() const;
  bool IsLast() const { return block_.use_count() == 1; }

 private:
  friend class MemoryPool;
  struct Block;
  std::shared_ptr<Block> block_;
  int64_t offset_ = 0;
  int64_t bytes_ = 0;
};

// Blocking copies between host memory and a device's; plain memcpy where they are the same.
void CopyToDevice(const std::shared_ptr<DeviceContext>& context, const void* from, const DeviceMemory& to,
                  int64_t bytes);
void CopyToHost(const std::shared_ptr<DeviceContext>& context, const DeviceMemory& from, void* to, int64_t bytes);

// Caching allocator of one device. Thread-safe. Blocks return to the pool when their last owner goes.
// Throws kResourceExhausted naming `what` and the bytes.
class MemoryPool : public std::enable_shared_from_this<MemoryPool> {
 public:
  explicit MemoryPool(std::shared_ptr<DeviceContext> context);
  ~MemoryPool();
  DeviceMemory Allocate(int64_t bytes, const std::string& what);
  // Before the first Allocate: blocks that the host can address come from the heap as long as it has room.
  void AllocateFrom(std::shared_ptr<collectives::SharedHeap> heap);
  // Counters that tests read: allocations that were not served from the cache.
  int64_t fresh_allocations() const;
  int64_t bytes_in_use() const;
  // Gives what is cached back to the system.
  void Trim();

 private:
  friend class DeviceMemory;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hlorun::opencl
