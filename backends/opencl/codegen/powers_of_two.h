// Powers of two next to a size. All of positive numbers.
#pragma once

#include <bit>
#include <cstdint>

namespace hlorun::opencl {

// The least that is no smaller, and the greatest that is no larger.
constexpr int64_t PowerFrom(int64_t x) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(x))); }
constexpr int64_t PowerUpTo(int64_t x) { return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(x))); }
constexpr int64_t Log2(int64_t power) { return std::countr_zero(static_cast<uint64_t>(power)); }

}  // namespace hlorun::opencl
