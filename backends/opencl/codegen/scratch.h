// How an instruction's scratch memory is divided between its kernels.
#pragma once

#include <cstdint>

namespace hlorun::opencl {

// Parts of scratch start at multiples of this many bytes: then each may be a sub-buffer, whose start no device wants
// more aligned (CL_DEVICE_MEM_BASE_ADDR_ALIGN: PoCL 128, NVIDIA 512 bytes).
inline constexpr int64_t kScratchAlignment = 512;

inline int64_t AlignScratch(int64_t bytes) {
  return (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
}

}  // namespace hlorun::opencl
