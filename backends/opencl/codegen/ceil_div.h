// How many pieces cover a size.
#pragma once

#include <cstdint>

namespace hlorun::opencl {

// Of non-negative a and positive b.
constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace hlorun::opencl
