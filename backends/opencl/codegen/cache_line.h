// The unit in which memory is read and written on every CPU that OpenCL has a runtime for here.
#pragma once

#include <cstdint>

namespace hlorun::opencl {

inline constexpr int64_t kLineBytes = 64;

// Whether what lies so many bytes apart falls into few sets of the caches: a quarter of a page's.
constexpr bool FallsIntoFewSets(int64_t bytes_apart) { return bytes_apart % 1024 == 0; }

}  // namespace hlorun::opencl
