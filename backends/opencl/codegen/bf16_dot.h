// sum + a0 * b0 + a1 * b1 in each lane, a and b pairs of bf16 in 32 bits: x86's vdpbf16ps, by the two ways in which
// OpenCL compilers let it through. Neither checks whether the CPU has it, and a wrong one ends the process: believed
// only after a probe (runtime/probe.h).
#pragma once

#include <string_view>

namespace hlorun::opencl {

struct Bf16DotForm {
  std::string_view name;  // DeviceSpec::bf16_dot
  const char* source;     // float16 hl_dot_bf16(float16 sum, uint16 a, uint16 b)
};
inline constexpr const char* kBf16DotFunction = "hl_dot_bf16";

inline constexpr Bf16DotForm kBf16DotForms[] = {
    // PoCL hands inline assembly to an assembler that knows more instructions than its target has.
    {"assembly",
     "static inline float16 hl_dot_bf16(float16 sum, uint16 a, uint16 b) {\n"
     "  __asm__(\"vdpbf16ps %2, %1, %0\" : \"+v\"(sum) : \"v\"(a), \"v\"(b));\n  return sum;\n}\n"},
    // Intel's runtime refuses vectors there, but takes an LLVM intrinsic by its label.
    {"intrinsic",
     "typedef __bf16 hl_bf16_pairs __attribute__((ext_vector_type(32)));\n"
     "float16 hl_dot_bf16_intrinsic(float16, hl_bf16_pairs, hl_bf16_pairs) __asm__(\"llvm.x86.avx512bf16.dpbf16ps.512\");\n"
     "static inline float16 hl_dot_bf16(float16 sum, uint16 a, uint16 b) {\n"
     "  return hl_dot_bf16_intrinsic(sum, __builtin_astype(a, hl_bf16_pairs), __builtin_astype(b, hl_bf16_pairs));\n}\n"},
};

}  // namespace hlorun::opencl
