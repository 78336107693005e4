// Conversions between halves and floats by F16C's instructions, in the two forms in which OpenCL compilers make good
// code of them. Rounds to nearest even, denormal halves as they are, like the sequences of integer instructions in
// opencl_helpers.cc, which take five times as long; of a NaN its upper bits stay, where those have one NaN a sign.
// Neither form checks whether the CPU has the instructions: believed only after a probe (runtime/probe.h).
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace hlorun::opencl {

// PoCL's compiler knows that a converted half fits into one, compares halves, and does so lane by lane: only what is
// hidden in assembly stays in vectors of floats.
inline constexpr std::string_view kHalvesByAssembly = "assembly";
// Intel's compiler refuses vectors there, and knows how to compare vectors of halves.
inline constexpr std::string_view kHalvesByVectors = "vectors";
inline constexpr std::array kHalfForms = {kHalvesByAssembly, kHalvesByVectors};

// hl_from_f16 and hl_to_f16 of one lane, hl_from_f16_N and hl_to_f16_N of N = 2, 4, 8 or 16, between ushort and float,
// in a form of the above.
inline std::string HalfConversions(std::string_view form, int lanes) {
  const bool by_assembly = form == kHalvesByAssembly;
  if (lanes == 1) {
    return by_assembly
               ? "static inline float hl_from_f16(ushort x) {\n  float y;\n"
                 "  __asm__(\"vmovd %1, %0; vcvtph2ps %0, %0\" : \"=x\"(y) : \"r\"((uint)x));\n  return y;\n}\n"
                 "static inline ushort hl_to_f16(float x) {\n  uint bits;\n  float half_lanes;\n"
                 "  __asm__(\"vcvtps2ph $0, %2, %1; vmovd %1, %0\" : \"=r\"(bits), \"=x\"(half_lanes) : \"x\"(x));\n"
                 "  return (ushort)bits;\n}\n"
               : "static inline float hl_from_f16(ushort x) { return __builtin_load_halff((const __private half*)&x); }\n"
                 "static inline ushort hl_to_f16(float x) {\n"
                 "  ushort bits;\n  __builtin_store_halff(x, (__private half*)&bits);\n  return bits;\n}\n";
  }
  const std::string n = std::to_string(lanes), halves = "hl_halves" + n;
  const std::string from = "static inline float" + n + " hl_from_f16_" + n + "(ushort" + n + " x) {\n";
  const std::string to = "static inline ushort" + n + " hl_to_f16_" + n + "(float" + n + " x) {\n";
  if (!by_assembly) {
    return "typedef __fp16 " + halves + " __attribute__((ext_vector_type(" + n + ")));\n" + from +
           "  return __builtin_convertvector(__builtin_astype(x, " + halves + "), float" + n + ");\n}\n" + to +
           "  return __builtin_astype(__builtin_convertvector(x, " + halves + "), ushort" + n + ");\n}\n";
  }
  // Four halves are the least that a register is converted of.
  const std::string wide = lanes < 4 ? "4" : n, bits = lanes <= 4 ? "8" : n;
  const std::string lower = lanes <= 4 ? ".lo" : "", end = lanes < 4 ? ".lo" : "";
  const std::string whole_bits = lanes == 2   ? "(ushort8)(x, (ushort2)(0), (ushort4)(0))"
                                 : lanes == 4 ? "(ushort8)(x, (ushort4)(0))"
                                              : "x";
  const std::string whole = lanes == 2 ? "(float4)(x, (float2)(0.0f))" : "x";
  return from + "  float" + wide + " y;\n  __asm__(\"vcvtph2ps %1, %0\" : \"=v\"(y) : \"v\"(" + whole_bits +
         "));\n  return y" + end + ";\n}\n" + to + "  ushort" + bits +
         " bits;\n  __asm__(\"vcvtps2ph $0, %1, %0\" : \"=v\"(bits) : \"v\"(" + whole + "));\n  return bits" + lower +
         end + ";\n}\n";
}

}  // namespace hlorun::opencl
