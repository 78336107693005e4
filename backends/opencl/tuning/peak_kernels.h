// Kernels of nothing but one kind of multiplication, as fast as the device can: the roof above every product.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/device_spec.h"

namespace hlorun::opencl {

// One __kernel of two parameters, (__global const float* x, __global uint* out): x holds a 0.5 for each work-group,
// kPeakStride elements apart, and out has that many words a group; both begin where a vector may.
struct PeakKernel {
  std::vector<std::string_view> functions;  // what it calls, of which a program wants one each
  std::string source;
  double operations = 0;  // of a work-item; a multiply-add is two
};
// A program of all of them.
std::string ProgramOf(std::span<const PeakKernel> kernels);

inline constexpr int64_t kPeakStride = 64;

struct Peak {
  const char* cost;  // its name in DeviceSpec::cost_table; f32's is the field f32_gflops
  bool (*is_there)(const DeviceSpec& device);
  // `rounds` of a loop over as many chains of sums as hide the unit's latency and stay in registers.
  PeakKernel (*make)(const DeviceSpec& device, const std::string& name, int64_t rounds);
};

inline constexpr const char* kF32Peak = "f32_gflops";

// Types, and units of the device, of which some may not be there.
std::span<const Peak> Peaks();
// The row of that name, which there is.
const Peak& PeakOf(std::string_view cost);

}  // namespace hlorun::opencl
