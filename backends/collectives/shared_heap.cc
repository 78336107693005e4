#include "backends/collectives/shared_heap.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "hlo/map_pages.h"

namespace hlorun::collectives {
namespace {

constexpr size_t kPage = 4096;
// Linux 6.1; older headers lack it. Unlike advice it does not depend on the system's setting for shared memory.
constexpr int kCollapse = 25;

size_t RoundUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

// The file at an address that a huge page may start at, so that all processes can map huge pages.
std::byte* MapFile(int descriptor, size_t bytes) {
  std::byte* base = MapPages(bytes, PROT_NONE, MAP_NORESERVE);
  if (base == nullptr) return nullptr;
  if (mmap(base, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, descriptor, 0) == MAP_FAILED) {
    munmap(base, bytes);
    return nullptr;
  }
  madvise(base, bytes, MADV_HUGEPAGE);
  madvise(base, bytes, MADV_DONTDUMP);
  return base;
}

// Tells heaps of one process apart, should a descriptor be used again. Kept in the heap's first page.
int64_t NextTag() {
  static std::atomic<int64_t> next{0x68656170};
  return next++;
}

}  // namespace

SharedHeap::SharedHeap(int descriptor, std::byte* base, size_t bytes)
    : descriptor_(descriptor), base_(base), bytes_(bytes), tag_(NextTag()) {
  *reinterpret_cast<int64_t*>(base_) = tag_;
  free_[static_cast<int64_t>(kHugePage)] = static_cast<int64_t>(bytes_ - kHugePage);
}

SharedHeap::~SharedHeap() {
  for (const auto& [base, bytes] : mapped_) munmap(base, bytes);
  munmap(base_, bytes_);
  close(descriptor_);
}

std::shared_ptr<SharedHeap> SharedHeap::Create() {
  const int descriptor = memfd_create("hlorun-shared-heap", MFD_CLOEXEC);
  if (descriptor < 0) return nullptr;
  const auto memory = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t bytes = RoundUp(memory, kHugePage);
  std::byte* base = ftruncate(descriptor, static_cast<off_t>(bytes)) == 0 ? MapFile(descriptor, bytes) : nullptr;
  if (base == nullptr) {
    close(descriptor);
    return nullptr;
  }
  return std::shared_ptr<SharedHeap>(new SharedHeap(descriptor, base, bytes));
}

HeapAddress SharedHeap::address() const { return {getpid(), descriptor_, tag_, static_cast<int64_t>(bytes_)}; }

bool SharedHeap::Join(std::span<const HeapAddress> ranks, int own_rank) {
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (static_cast<int>(rank) == own_rank) {
      bases_.push_back(base_);
      continue;
    }
    const HeapAddress& address = ranks[rank];
    const std::string path = "/proc/" + std::to_string(address.process) + "/fd/" + std::to_string(address.descriptor);
    const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (descriptor < 0) return false;
    const auto bytes = static_cast<size_t>(address.bytes);
    std::byte* base =
        lseek(descriptor, 0, SEEK_END) == static_cast<off_t>(bytes) ? MapFile(descriptor, bytes) : nullptr;
    close(descriptor);
    if (base == nullptr) return false;
    mapped_.emplace_back(base, bytes);
    if (*reinterpret_cast<const int64_t*>(base) != address.tag) return false;
    bases_.push_back(base);
  }
  return true;
}

int64_t SharedHeap::Reserve(size_t bytes, size_t alignment) {
  const auto wanted = static_cast<int64_t>(bytes), step = static_cast<int64_t>(alignment);
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [begin, room] = *it;
    const int64_t at = (begin + step - 1) / step * step;
    if (at + wanted > begin + room) continue;
    free_.erase(it);
    if (at > begin) free_[begin] = at - begin;
    if (at + wanted < begin + room) free_[at + wanted] = begin + room - at - wanted;
    return at;
  }
  return -1;
}

std::byte* SharedHeap::Allocate(size_t bytes) {
  bytes = RoundUp(bytes, kPage);
  const bool huge = bytes >= kHugePage;
  const int64_t offset = Reserve(bytes, huge ? kHugePage : kPage);
  if (offset < 0) return nullptr;
  std::byte* block = base_ + offset;
  if (huge) {
    // Whole huge pages of a file are made of pages that are there.
    const size_t whole = bytes / kHugePage * kHugePage;
    for (size_t at = 0; at < whole; at += kPage) *reinterpret_cast<volatile char*>(block + at) = 0;
    madvise(block, whole, kCollapse);
  }
  return block;
}

void SharedHeap::Free(std::byte* block, size_t bytes) {
  bytes = RoundUp(bytes, kPage);
  int64_t begin = block - base_, length = static_cast<int64_t>(bytes);
  fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
            static_cast<off_t>(length));
  const std::lock_guard<std::mutex> lock(mutex_);
  auto after = free_.lower_bound(begin);
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == begin) {
      begin = before->first;
      length += before->second;
      free_.erase(before);
    }
  }
  if (after != free_.end() && begin + length == after->first) {
    length += after->second;
    free_.erase(after);
  }
  free_[begin] = length;
}

}  // namespace hlorun::collectives
