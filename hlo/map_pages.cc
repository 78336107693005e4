#include "hlo/map_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace hlorun {

constexpr size_t kPage = 4096;

std::byte* MapPages(size_t bytes, int protection, int flags) {
  bytes = (bytes + kPage - 1) / kPage * kPage;
  // One huge page more than asked, so that the block can start on a huge page; the rest is unmapped.
  const size_t slack = bytes >= kHugePage ? kHugePage : 0;
  void* mapped = mmap(nullptr, bytes + slack, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* start = static_cast<std::byte*>(mapped);
  if (slack == 0) return start;
  const size_t skip = (kHugePage - reinterpret_cast<uintptr_t>(start) % kHugePage) % kHugePage;
  if (skip > 0) munmap(start, skip);
  if (slack > skip) munmap(start + skip + bytes, slack - skip);
  madvise(start + skip, bytes, MADV_HUGEPAGE);
  return start + skip;
}

}  // namespace hlorun
