// Sub-groups of a GPU's work-items, which hand each other values without local memory and barriers: work-item i of a
// group of one dimension is lane i % size of sub-group i / size. All lanes of a sub-group come by such an exchange.
// Neither OpenCL nor PTX promises that order: believed only after a probe (runtime/probe.h).
#pragma once

#include <array>
#include <string_view>

namespace hlorun::opencl {

// (uint or ulong x, uint distance): x of the lane whose number is this one's xor `distance`.
inline constexpr const char* kExchange = "hl_exchange";
inline constexpr const char* kExchangeWide = "hl_exchange_wide";

// What DeviceSpec::sub_group_moves may say, and its functions.
struct ExchangeForm {
  std::string_view name;
  bool names_size;  // the kernel asks for the size of its sub-groups, which the device would choose otherwise
  const char *word, *wide;
};

#define HLORUN_KHR_EXCHANGE(TYPE, NAME)                         \
  "#pragma OPENCL EXTENSION cl_khr_subgroup_shuffle : enable\n" \
  "static inline " TYPE " " NAME "(" TYPE " x, uint distance) {\n  return sub_group_shuffle_xor(x, distance);\n}\n"

inline constexpr std::array<ExchangeForm, 2> kExchangeForms = {{
    {"khr", true, HLORUN_KHR_EXCHANGE("uint", "hl_exchange"), HLORUN_KHR_EXCHANGE("ulong", "hl_exchange_wide")},
    {"ptx", false,
     "static inline uint hl_exchange(uint x, uint distance) {\n  uint y;\n"
     "  __asm__ volatile(\"shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;\" : \"=r\"(y) : \"r\"(x), "
     "\"r\"(distance));\n  return y;\n}\n",
     "static inline ulong hl_exchange_wide(ulong x, uint distance) {\n  uint2 y, z = as_uint2(x);\n"
     "  __asm__ volatile(\"shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;\" : \"=r\"(y.s0) : \"r\"(z.s0), "
     "\"r\"(distance));\n"
     "  __asm__ volatile(\"shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;\" : \"=r\"(y.s1) : \"r\"(z.s1), "
     "\"r\"(distance));\n  return as_ulong(y);\n}\n"},
}};

#undef HLORUN_KHR_EXCHANGE

// For tests: exchanges through local memory, by the same kernels on any device.
inline constexpr std::string_view kPlainExchange = "plain";

}  // namespace hlorun::opencl
