// Memory straight from the system, for large blocks.
#pragma once

#include <cstddef>

namespace hlorun {

constexpr size_t kHugePage = size_t{2} << 20;

// Zeroed memory that costs nothing until it is touched. From the size of a huge page on it starts on one and asks for
// such: kernels that read it in place lose as much to address translation as to memory where pages are small.
// `protection`, `flags`: as of mmap, beside private and anonymous. Given back by munmap, with the same bytes. Null: the
// system has none. Thread-safe.
std::byte* MapPages(size_t bytes, int protection, int flags = 0);

}  // namespace hlorun
