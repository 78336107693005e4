// Matrix instructions of GPUs, whose operands lie in pieces in the registers of a sub-group of 32 work-items: 16 x 16
// of lhs times 16 x 8 of rhs, elements of 16 bits, summed in f32; or 16 x 32 times 32 x 8 of s8, summed in s32. The PTX
// manual ("mma.m16n8k16", "mma.m16n8k32", "ldmatrix") says which work-item holds what. An assembler that does not know
// them refuses the program: believed only after a probe (runtime/probe.h).
#pragma once

#include <array>
#include <string_view>

#include "backends/opencl/codegen/named_source.h"

namespace hlorun::opencl {

// (ulong at): four squares of 8 x 8 elements of 16 bits. Work-item i of a sub-group names where in local memory row
// i % 8 of square i / 8 begins, at a multiple of 16 bytes, and has from each square elements 2 t and 2 t + 1 of row g,
// where g is i / 4 and t is i % 4; or, of the turned one, those rows' elements g. A row may as well be 16 of s8, of
// which it then has 4 t to 4 t + 3.
inline constexpr const char* kFragmentLoad = "hl_fragment_load";
inline constexpr const char* kFragmentLoadTurned = "hl_fragment_load_turned";
// (float4 sums, uint4 lhs, uint upper, uint lower): sums of rows g and g + 8, two each, at columns 2 t and 2 t + 1.
inline constexpr const char* kFragmentBf16 = "hl_fragment_bf16";
inline constexpr const char* kFragmentF16 = "hl_fragment_f16";
// (int4 sums, uint4 lhs, uint upper, uint lower): the same of s8, in the same places.
inline constexpr const char* kFragmentS8 = "hl_fragment_s8";
// (float4 sums, float a, float b, float c, float d): the same sums by plain multiplications, of one k: rows a and b,
// columns c and d.
inline constexpr const char* kFragmentPlain = "hl_fragment_plain";
inline constexpr const char* kFragmentPlainS32 = "hl_fragment_plain_s32";  // of int4 and int; sums wrap
// (uint a, uint b, uint c, uint d): four lines of four bytes as four columns, a's bytes first in each.
inline constexpr const char* kFragmentTurn = "hl_fragment_turn";

// What DeviceSpec::matrix_fragments may say.
inline constexpr std::string_view kFragmentsByPtx = "ptx";
inline constexpr std::string_view kPlainFragments = "plain";  // for tests: the same kernels on any device

#define HLORUN_FRAGMENT_LOAD(NAME, ORDER)                                                                            \
  "static inline uint4 " NAME                                                                                        \
  "(ulong at) {\n  uint4 x;\n"                                                                                       \
  "  __asm__ volatile(\"ldmatrix.sync.aligned.m8n8.x4" ORDER                                                         \
  ".shared.b16 {%0,%1,%2,%3}, [%4];\"\n"                                                                             \
  "                   : \"=r\"(x.s0), \"=r\"(x.s1), \"=r\"(x.s2), \"=r\"(x.s3) : \"r\"((uint)(at)) : \"memory\");\n" \
  "  return x;\n}\n"
// SUM: the type of sums, and the letter of its registers.
#define HLORUN_FRAGMENT_SUMS(NAME, SUM, LETTER, FORM)                                           \
  "static inline " SUM "4 " NAME "(" SUM                                                        \
  "4 s, uint4 a, uint b, uint c) {\n"                                                           \
  "  __asm__(\"mma.sync.aligned." FORM                                                          \
  " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\"\n"                                  \
  "          : \"+" LETTER "\"(s.s0), \"+" LETTER "\"(s.s1), \"+" LETTER "\"(s.s2), \"+" LETTER \
  "\"(s.s3)\n"                                                                                  \
  "          : \"r\"(a.s0), \"r\"(a.s1), \"r\"(a.s2), \"r\"(a.s3), \"r\"(b), \"r\"(c));\n  return s;\n}\n"

inline constexpr std::array<NamedSource, 8> kFragmentFunctions = {{
    {kFragmentLoad, HLORUN_FRAGMENT_LOAD("hl_fragment_load", "")},
    {kFragmentLoadTurned, HLORUN_FRAGMENT_LOAD("hl_fragment_load_turned", ".trans")},
    {kFragmentBf16, HLORUN_FRAGMENT_SUMS("hl_fragment_bf16", "float", "f", "m16n8k16.row.col.f32.bf16.bf16.f32")},
    {kFragmentF16, HLORUN_FRAGMENT_SUMS("hl_fragment_f16", "float", "f", "m16n8k16.row.col.f32.f16.f16.f32")},
    {kFragmentS8, HLORUN_FRAGMENT_SUMS("hl_fragment_s8", "int", "r", "m16n8k32.row.col.s32.s8.s8.s32")},
    {kFragmentPlain,
     "static inline float4 hl_fragment_plain(float4 s, float a, float b, float c, float d) {\n"
     "  return fma((float4)(a, a, b, b), (float4)(c, d, c, d), s);\n}\n"},
    {kFragmentPlainS32,
     "static inline int4 hl_fragment_plain_s32(int4 s, int a, int b, int c, int d) {\n"
     "  return as_int4(as_uint4(s) + as_uint4((int4)(a, a, b, b)) * as_uint4((int4)(c, d, c, d)));\n}\n"},
    // Two by two bytes within pairs of lines, then two by two halves of words.
    {kFragmentTurn,
     "static inline uint4 hl_fragment_turn(uint a, uint b, uint c, uint d) {\n"
     "  uint even = (a & 0x00ff00ffu) | ((b << 8) & 0xff00ff00u), odd = ((a >> 8) & 0x00ff00ffu) | (b & 0xff00ff00u);\n"
     "  uint even2 = (c & 0x00ff00ffu) | ((d << 8) & 0xff00ff00u), odd2 = ((c >> 8) & 0x00ff00ffu) | (d & 0xff00ff00u);\n"
     "  return (uint4)((even & 0xffffu) | (even2 << 16), (odd & 0xffffu) | (odd2 << 16),\n"
     "                 (even >> 16) | (even2 & 0xffff0000u), (odd >> 16) | (odd2 & 0xffff0000u));\n}\n"},
}};

#undef HLORUN_FRAGMENT_LOAD
#undef HLORUN_FRAGMENT_SUMS

}  // namespace hlorun::opencl
