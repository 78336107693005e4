// The unit in which memory is read and written on every CPU that OpenCL has a runtime for here.
#pragma once

#include <cstdint>

namespace hlorun::opencl {

inline constexpr int64_t kLineBytes = 64;

}  // namespace hlorun::opencl
