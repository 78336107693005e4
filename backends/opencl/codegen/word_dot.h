// sum + products of the elements of two words in each lane: x86's vdpbf16ps (two bf16) and vpdpbusd (four bytes, those
// of one side unsigned), by the two ways in which OpenCL compilers let them through. Neither checks whether the CPU has
// the instruction, and a wrong one ends the process: believed only after a probe (runtime/probe.h).
#pragma once

#include <span>
#include <string_view>

namespace hlorun::opencl {

struct WordDotForm {
  std::string_view name;  // DeviceSpec::bf16_dot or s8_dot
  const char* source;     // S16 function(S16 sum, uint16 a, uint16 b), S the type of sums, or functions that round
};
// The source of `form` in `forms`, nullptr if it is not there.
constexpr const char* SourceOf(std::span<const WordDotForm> forms, std::string_view form) {
  for (const WordDotForm& known : forms) {
    if (known.name == form) return known.source;
  }
  return nullptr;
}

inline constexpr const char* kBf16DotFunction = "hl_dot_bf16";
inline constexpr const char* kS8DotFunction = "hl_dot_s8";  // a signed, b unsigned

inline constexpr WordDotForm kBf16DotForms[] = {
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

// Rounding to bf16 in the same forms, by instructions that take denormals for zeros: a vector of floats, and two of
// them (bf16_pairs.h's kRoundToAnyPairs) to words of which the first eight hold x. The assembly's operands, in this
// notation, are the lower half's and the upper half's; the intrinsic's are the upper half's and the lower half's.
inline constexpr const char* kBf16RoundFunction = "hl_result_bf16_16";
inline constexpr WordDotForm kBf16RoundForms[] = {
    {"assembly",
     "static inline float16 hl_result_bf16_16(float16 x) {\n  ushort16 bits;\n"
     "  __asm__(\"vcvtneps2bf16 %1, %0\" : \"=v\"(bits) : \"v\"(x));\n"
     "  return as_float16(convert_uint16(bits) << 16);\n}\n"
     "static inline uint16 hl_pack_any_bf16(float16 x, float16 y) {\n  uint16 bits;\n"
     "  __asm__(\"vcvtne2ps2bf16 %1, %2, %0\" : \"=v\"(bits) : \"v\"(x), \"v\"(y));\n  return bits;\n}\n"},
    {"intrinsic",
     "typedef __bf16 hl_bf16_half __attribute__((ext_vector_type(16)));\n"
     "typedef __bf16 hl_bf16_whole __attribute__((ext_vector_type(32)));\n"
     "hl_bf16_half hl_round_bf16_intrinsic(float16) __asm__(\"llvm.x86.avx512bf16.cvtneps2bf16.512\");\n"
     "hl_bf16_whole hl_pack_bf16_intrinsic(float16, float16) __asm__(\"llvm.x86.avx512bf16.cvtne2ps2bf16.512\");\n"
     "static inline float16 hl_result_bf16_16(float16 x) {\n"
     "  return as_float16(convert_uint16(__builtin_astype(hl_round_bf16_intrinsic(x), ushort16)) << 16);\n}\n"
     "static inline uint16 hl_pack_any_bf16(float16 x, float16 y) {\n"
     "  return __builtin_astype(hl_pack_bf16_intrinsic(y, x), uint16);\n}\n"},
};

inline constexpr WordDotForm kS8DotForms[] = {
    {"assembly",
     "static inline int16 hl_dot_s8(int16 sum, uint16 a, uint16 b) {\n"
     "  __asm__(\"vpdpbusd %1, %2, %0\" : \"+v\"(sum) : \"v\"(a), \"v\"(b));\n  return sum;\n}\n"},
    {"intrinsic",
     "typedef char hl_s8_quads __attribute__((ext_vector_type(64)));\n"
     "int16 hl_dot_s8_intrinsic(int16, hl_s8_quads, hl_s8_quads) __asm__(\"llvm.x86.avx512.vpdpbusd.512\");\n"
     "static inline int16 hl_dot_s8(int16 sum, uint16 a, uint16 b) {\n"
     "  return hl_dot_s8_intrinsic(sum, __builtin_astype(b, hl_s8_quads), __builtin_astype(a, hl_s8_quads));\n}\n"},
};

}  // namespace hlorun::opencl
