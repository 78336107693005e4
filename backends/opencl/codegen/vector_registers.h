#pragma once

#include <cstdint>

#include "hlo/device_spec.h"

namespace hlorun::opencl {

// How many vector registers the device's instruction set has: the widest x86 vectors and all of Arm's have 32.
inline int64_t VectorRegisters(const DeviceSpec& device) { return device.vector_bytes >= 64 ? 32 : 16; }

}  // namespace hlorun::opencl
