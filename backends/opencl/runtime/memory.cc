#include "backends/opencl/runtime/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/opencl/runtime/cl_error.h"
#include "backends/opencl/runtime/device_context.h"
#include "hlo/fault.h"
#include "hlo/map_pages.h"

namespace hlorun::opencl {
namespace {

constexpr int64_t kPage = 4096;
// A freed block waits in the cache unless the cache holds more than this share of the device's memory.
constexpr int64_t kIdleShare = 4;

// Rounds up to eight steps an octave, whole pages: at most 12.5 % more than asked, and few enough classes that blocks
// are reused by arrays of similar size.
int64_t SizeClass(int64_t bytes) {
  const uint64_t pages = static_cast<uint64_t>(std::max<int64_t>(1, (bytes + kPage - 1) / kPage));
  if (pages <= 8) return static_cast<int64_t>(pages) * kPage;
  const uint64_t step = std::bit_floor(pages) / 8;
  return static_cast<int64_t>((pages + step - 1) / step * step) * kPage;
}

// Sub-buffers that wait in the cache with their block, whose next plan may have other slices.
constexpr size_t kMostSubBuffers = 1024;

uint64_t NextStorage() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

// What the system gave: a mapping or a cl_mem with the sub-buffers made of it.
struct Storage {
  uint64_t number = NextStorage();  // of this cl_mem with these sub-buffers
  std::byte* host = nullptr;
  bool in_heap = false;
  cl::Buffer buffer;
  int64_t bytes = 0;
  std::map<std::pair<int64_t, int64_t>, cl::Buffer> sub_buffers;  // by offset and bytes
};

}  // namespace

struct MemoryPool::State {
  cl::Context context;
  cl::CommandQueue queue;
  std::string device_name;
  bool raw_pointers = true;
  int64_t limit = 0;         // of one array
  int64_t device_bytes = 0;  // of all

  std::mutex mutex;
  std::unordered_map<int64_t, std::vector<Storage>> idle;  // by size class
  int64_t idle_bytes = 0;
  int64_t used_bytes = 0;
  std::atomic<int64_t> fresh{0};

  std::shared_ptr<collectives::SharedHeap> heap;  // null: memory of this process alone

  ~State() { Drop(); }

  void Unmap(Storage& storage) {
    if (storage.host == nullptr) return;
    if (storage.in_heap) {
      heap->Free(storage.host, static_cast<size_t>(storage.bytes));
    } else {
      munmap(storage.host, static_cast<size_t>(storage.bytes));
    }
    storage.host = nullptr;
  }

  void Drop() {
    for (auto& [size, blocks] : idle) {
      for (Storage& storage : blocks) Unmap(storage);
    }
    idle.clear();
    idle_bytes = 0;
  }

  bool Take(int64_t size, Storage& storage) {
    std::lock_guard lock(mutex);
    auto found = idle.find(size);
    if (found == idle.end() || found->second.empty()) return false;
    storage = std::move(found->second.back());
    found->second.pop_back();
    idle_bytes -= size;
    used_bytes += size;
    return true;
  }

  void GiveBack(Storage storage) {
    if (storage.sub_buffers.size() > kMostSubBuffers) {
      storage.sub_buffers.clear();
      storage.number = NextStorage();
    }
    std::lock_guard lock(mutex);
    used_bytes -= storage.bytes;
    if (idle_bytes + storage.bytes > device_bytes / kIdleShare) {
      Unmap(storage);
      return;
    }
    idle_bytes += storage.bytes;
    idle[storage.bytes].push_back(std::move(storage));
  }

  // NVIDIA's driver (580) gives a buffer its place at its first use. Where that is by sub-buffers, part of what a
  // kernel writes there is zero again once another kernel has the buffer itself: so the buffer is used before they are
  // made.
  cl::Buffer Placed(cl_mem made, cl_int& status) const {
    cl::Buffer buffer(made);
    status =
        clEnqueueMigrateMemObjects(queue(), 1, &made, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0, nullptr, nullptr);
    return status == CL_SUCCESS ? buffer : cl::Buffer();
  }

  Storage Create(int64_t size, int64_t bytes, const std::string& what) {
    std::lock_guard lock(mutex);
    if (used_bytes + idle_bytes + size > device_bytes) Drop();
    if (used_bytes + size > device_bytes || FaultHits(Fault::kAlloc)) {
      Fail(ErrorCode::kResourceExhausted, "out of memory: {} needs {} bytes, {} has {} of which {} are in use", what,
           bytes, device_name, device_bytes, used_bytes);
    }
    Storage storage;
    storage.bytes = size;
    for (const bool retried : {false, true}) {
      cl_int status = CL_MEM_OBJECT_ALLOCATION_FAILURE;
      if (raw_pointers) {
        if (heap != nullptr) storage.host = heap->Allocate(static_cast<size_t>(size));
        storage.in_heap = storage.host != nullptr;
        if (storage.host == nullptr) storage.host = MapPages(static_cast<size_t>(size), PROT_READ | PROT_WRITE);
        if (storage.host != nullptr) status = CL_SUCCESS;
      } else {
        const cl_mem made = clCreateBuffer(context(), CL_MEM_READ_WRITE, static_cast<size_t>(size), nullptr, &status);
        if (status == CL_SUCCESS) storage.buffer = Placed(made, status);
      }
      if (status == CL_SUCCESS) break;
      if (retried) {
        Fail(ErrorCode::kResourceExhausted, "out of memory: {} needs {} bytes and {} gives none ({})", what, bytes,
             device_name, StatusName(status));
      }
      Drop();
    }
    ++fresh;
    used_bytes += size;
    return storage;
  }
};

struct DeviceMemory::Block {
  Storage storage;
  int64_t bytes = 0;                        // of the storage's, as asked for
  std::shared_ptr<MemoryPool::State> pool;  // null for the caller's memory
  std::shared_ptr<const void> owner;
  std::atomic<bool> shared{false};
  std::atomic<const Lane*> lane{nullptr};  // the first in which a run had it for an argument
  std::atomic<bool> in_several_lanes{false};
  std::mutex mutex;  // of sub_buffers

  ~Block() {
    if (pool != nullptr) pool->GiveBack(std::move(storage));
  }
};

DeviceMemory DeviceMemory::Wrap(void* data, int64_t bytes, std::shared_ptr<const void> owner) {
  DeviceMemory memory;
  memory.block_ = std::make_shared<Block>();
  memory.block_->storage.host = static_cast<std::byte*>(data);
  memory.block_->storage.bytes = bytes;
  memory.block_->owner = std::move(owner);
  memory.block_->shared = true;
  memory.bytes_ = bytes;
  return memory;
}

std::byte* DeviceMemory::host() const {
  return block_ != nullptr && block_->storage.host != nullptr ? block_->storage.host + offset_ : nullptr;
}

cl_mem DeviceMemory::buffer() const { return block_ != nullptr ? block_->storage.buffer() : nullptr; }

cl_mem DeviceMemory::argument() const {
  if (block_ == nullptr || block_->storage.buffer() == nullptr) return nullptr;
  Storage& storage = block_->storage;
  // Kernels do not touch slices without bytes.
  if (bytes_ == 0 || (offset_ == 0 && bytes_ == block_->bytes)) return storage.buffer();
  std::lock_guard lock(block_->mutex);
  cl::Buffer& sub = storage.sub_buffers[{offset_, bytes_}];
  if (sub() == nullptr) {
    // Of the slice alone: kernels that run side by side (sections.h) must not have overlapping ones.
    cl_buffer_region region{static_cast<size_t>(offset_), static_cast<size_t>(bytes_)};
    cl_int status = CL_SUCCESS;
    const cl_mem made =
        clCreateSubBuffer(storage.buffer(), CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
    CheckCl(status, "creating a sub-buffer");
    sub = cl::Buffer(made);
    if (block_->pool != nullptr) ++block_->pool->fresh;
  }
  return sub();
}

DeviceMemory::Place DeviceMemory::place() const {
  if (host() != nullptr || block_ == nullptr) return {host(), 0, 0, 0};
  return {buffer(), offset_, bytes_, block_->storage.number};
}

DeviceMemory DeviceMemory::Sub(int64_t offset, int64_t bytes) const {
  HLORUN_CHECK(offset >= 0 && bytes >= 0 && offset + bytes <= bytes_);
  DeviceMemory part = *this;
  part.offset_ += offset;
  part.bytes_ = bytes;
  return part;
}

bool DeviceMemory::Overlaps(const DeviceMemory& other) const {
  if (host() != nullptr && other.host() != nullptr)
    return host() < other.host() + other.bytes_ && other.host() < host() + bytes_;
  return block_ != nullptr && block_ == other.block_ && offset_ < other.offset_ + other.bytes_ &&
         other.offset_ < offset_ + bytes_;
}

void DeviceMemory::MarkShared() const {
  if (block_ != nullptr) block_->shared = true;
}

bool DeviceMemory::shared() const { return block_ != nullptr && block_->shared; }

void DeviceMemory::UsedIn(const Lane* lane) const {
  if (block_ == nullptr || block_->lane == lane || block_->in_several_lanes) return;
  const Lane* first = nullptr;
  if (!block_->lane.compare_exchange_strong(first, lane) && first != lane) block_->in_several_lanes = true;
}

bool DeviceMemory::IsUsedOnlyIn(const Lane* lane) const {
  return block_ == nullptr || (block_->lane == lane && !block_->in_several_lanes);
}

bool DeviceMemory::IsOfCaller() const { return block_ != nullptr && block_->owner != nullptr; }

MemoryPool::MemoryPool(std::shared_ptr<DeviceContext> context) : state_(std::make_shared<State>()) {
  const DeviceSpec& spec = context->spec();
  state_->context = context->context();
  state_->queue = context->transfer_queue();
  state_->device_name = spec.name;
  state_->raw_pointers = spec.raw_pointers;
  state_->limit = spec.max_allocation_bytes;
  state_->device_bytes = spec.global_memory_bytes;
}

MemoryPool::~MemoryPool() = default;

DeviceMemory MemoryPool::Allocate(int64_t bytes, const std::string& what) {
  if (bytes > state_->limit) {
    Fail(ErrorCode::kResourceExhausted, "{} needs {} bytes in one array; {} allows {}", what, bytes,
         state_->device_name, state_->limit);
  }
  const int64_t size =
      std::min(SizeClass(bytes), std::max(state_->limit / kPage * kPage, (bytes + kPage - 1) / kPage * kPage));
  DeviceMemory memory;
  memory.block_ = std::make_shared<DeviceMemory::Block>();
  if (!state_->Take(size, memory.block_->storage)) memory.block_->storage = state_->Create(size, bytes, what);
  memory.block_->pool = state_;
  memory.block_->bytes = memory.bytes_ = bytes;
  return memory;
}

void MemoryPool::AllocateFrom(std::shared_ptr<collectives::SharedHeap> heap) {
  const std::lock_guard lock(state_->mutex);
  state_->Drop();
  state_->heap = std::move(heap);
}

int64_t MemoryPool::fresh_allocations() const { return state_->fresh; }

int64_t MemoryPool::bytes_in_use() const {
  std::lock_guard lock(state_->mutex);
  return state_->used_bytes;
}

void MemoryPool::Trim() {
  std::lock_guard lock(state_->mutex);
  state_->Drop();
}

void CopyToDevice(const std::shared_ptr<DeviceContext>& context, const void* from, const DeviceMemory& to,
                  int64_t bytes) {
  if (bytes == 0) return;
  if (to.host() != nullptr) {
    std::memcpy(to.host(), from, static_cast<size_t>(bytes));
    return;
  }
  CheckCl(clEnqueueWriteBuffer(context->transfer_queue()(), to.buffer(), CL_TRUE, static_cast<size_t>(to.offset()),
                               static_cast<size_t>(bytes), from, 0, nullptr, nullptr),
          "copying to the device");
}

void CopyToHost(const std::shared_ptr<DeviceContext>& context, const DeviceMemory& from, void* to, int64_t bytes) {
  if (bytes == 0) return;
  if (from.host() != nullptr) {
    std::memcpy(to, from.host(), static_cast<size_t>(bytes));
    return;
  }
  CheckCl(clEnqueueReadBuffer(context->transfer_queue()(), from.buffer(), CL_TRUE, static_cast<size_t>(from.offset()),
                              static_cast<size_t>(bytes), to, 0, nullptr, nullptr),
          "copying from the device");
}

}  // namespace hlorun::opencl
