// x86's matrix unit (AMX): eight tile registers of 16 rows of 64 bytes. Kernels hold 32 x 32 sums in four of them and
// multiply 32 rows of lhs by 32 columns of rhs, 64 bytes of depth a step. Compilers of OpenCL C have no types for
// tiles: every function is inline assembly, and addresses are numbers, for Intel's runtime drops assembly with pointer
// operands. Nothing checks whether the CPU has the instructions, or whether the kernel of the system lets the process
// use them: believed only after a probe (runtime/probe.h).
#pragma once

#include <array>
#include <string_view>

#include "backends/opencl/codegen/named_source.h"

namespace hlorun::opencl {

inline constexpr const char* kUnitBegin = "hl_unit_begin";  // ()
inline constexpr const char* kUnitEnd = "hl_unit_end";      // (): before the work-item ends
inline constexpr const char* kUnitZero = "hl_unit_zero";    // (): sums = 0
inline constexpr const char* kUnitLoad = "hl_unit_load";    // (ulong at): sums from an array of 32 x 32 words
inline constexpr const char* kUnitStore = "hl_unit_store";  // (ulong at): and to one
// (ulong lhs, ulong row, ulong next, ulong rhs, long steps, ulong ahead, long lines): sums += products of two rows of
// tiles, one for each step: two tiles of 16 rows of lhs, which lie `row` bytes apart, the next step's `next` bytes on;
// two of 16 rows of words of rhs (two bf16 or four s8 along the depth) of 16 columns each. Each step reads so many
// cache lines from `ahead` on into the second cache.
inline constexpr const char* kUnitBf16 = "hl_unit_bf16";
inline constexpr const char* kUnitS8 = "hl_unit_s8";
// The same of f32 in three parts of bf16, which follow each other in a step.
inline constexpr const char* kUnitF32 = "hl_unit_f32";
// Of f32 whose parts of lhs are arrays of rows, `part` bytes apart: (ulong lhs, ulong row, ulong part, ulong rhs, long
// steps); rows' steps follow each other.
inline constexpr const char* kUnitF32Rows = "hl_unit_f32_rows";
// Of either, the first parts alone: (ulong lhs, ulong row, ulong next, ulong rhs, long steps).
inline constexpr const char* kUnitFirstParts = "hl_unit_first_parts";
// (ulong at): whether an array of sums has a NaN; (ulong at, ulong from): its NaN are replaced by what another has.
inline constexpr const char* kUnitHasNan = "hl_unit_has_nan";
inline constexpr const char* kUnitReplaceNan = "hl_unit_replace_nan";
// (float16): the bf16 that is nearest, as f32, of a finite number that is not too large; the first part, of any.
inline constexpr const char* kUnitPart = "hl_unit_part";
inline constexpr const char* kUnitFirstPart = "hl_unit_first_part";
// (float16, float16): words of numbers that are bf16: pairs of both at each place; the first's, then the second's.
inline constexpr const char* kUnitPairs = "hl_unit_pairs";
inline constexpr const char* kUnitRun = "hl_unit_run";
// (char16, char16, char16, char16): words of numbers that follow each other.
inline constexpr const char* kUnitBytes = "hl_unit_bytes";
// (ulong at, ulong bytes): 64 bytes from anywhere, of which only so many are read; the others are 0.
inline constexpr const char* kUnitRow = "hl_unit_row";
inline constexpr const char* kUnitPartOfRow = "hl_unit_part_of_row";

// Tiles are loaded when they are needed: the unit is busy 16 cycles with each product.
#define HLORUN_UNIT_STEPS(NAME, INSTRUCTION)                                                      \
  "static inline void " NAME                                                                      \
  "(ulong a, ulong row, ulong next, ulong b, long steps, ulong ahead, long lines) {\n"            \
  "  for (; steps > 0; --steps, a += next, b += 2048) {\n"                                        \
  "    for (long i = 0; i < lines; ++i, ahead += 64)\n"                                           \
  "      __asm__ volatile(\"prefetcht1 (%0)\" : : \"r\"(ahead));\n"                               \
  "    __asm__ volatile(\"tileloadd (%0,%3,1), %%tmm4\\n\\ttileloadd (%2,%4,1), %%tmm6\\n\\t\"\n" \
  "                     \"" INSTRUCTION                                                           \
  " %%tmm6, %%tmm4, %%tmm0\\n\\t\"\n"                                                             \
  "                     \"tileloadd 1024(%2,%4,1), %%tmm7\\n\\t\"\n"                              \
  "                     \"" INSTRUCTION                                                           \
  " %%tmm7, %%tmm4, %%tmm1\\n\\t\"\n"                                                             \
  "                     \"tileloadd (%1,%3,1), %%tmm5\\n\\t\"\n"                                  \
  "                     \"" INSTRUCTION                                                           \
  " %%tmm6, %%tmm5, %%tmm2\\n\\t\"\n"                                                             \
  "                     \"" INSTRUCTION                                                           \
  " %%tmm7, %%tmm5, %%tmm3\\n\"\n"                                                                \
  "                     : : \"r\"(a), \"r\"(a + 16 * row), \"r\"(b), \"r\"(row), \"r\"(64ul) : \"memory\");\n  }\n}\n"

// The products of a part of lhs and one of rhs that is in its tiles, or the other way round: in such turns six of 24
// loads are left out. LOW, HIGH: where the first 16 rows of lhs are and the others; of rhs, (%1,%2,1) behind AT.
#define HLORUN_UNIT_LHS(LOW, HIGH)                        \
  "tileloadd " LOW                                        \
  ", %%tmm4\\n\\ttdpbf16ps %%tmm6, %%tmm4, %%tmm0\\n\\t"  \
  "tdpbf16ps %%tmm7, %%tmm4, %%tmm1\\n\\ttileloadd " HIGH \
  ", %%tmm5\\n\\t"                                        \
  "tdpbf16ps %%tmm6, %%tmm5, %%tmm2\\n\\ttdpbf16ps %%tmm7, %%tmm5, %%tmm3\\n\\t"
#define HLORUN_UNIT_RHS(AT)                                       \
  "tileloadd " AT                                                 \
  "(%1,%2,1), %%tmm6\\n\\ttdpbf16ps %%tmm6, %%tmm4, %%tmm0\\n\\t" \
  "tdpbf16ps %%tmm6, %%tmm5, %%tmm2\\n\\ttileloadd 1024+" AT      \
  "(%1,%2,1), %%tmm7\\n\\t"                                       \
  "tdpbf16ps %%tmm7, %%tmm4, %%tmm1\\n\\ttdpbf16ps %%tmm7, %%tmm5, %%tmm3\\n\\t"
// The first part of rhs, and all products of a step, the smallest first.
#define HLORUN_UNIT_FIRST_RHS "tileloadd (%1,%2,1), %%tmm6\\n\\ttileloadd 1024(%1,%2,1), %%tmm7\\n\\t"
#define HLORUN_UNIT_PARTS(LOW0, HIGH0, LOW1, HIGH1, LOW2, HIGH2)                                          \
  HLORUN_UNIT_FIRST_RHS HLORUN_UNIT_LHS(LOW2, HIGH2) HLORUN_UNIT_LHS(LOW1, HIGH1) HLORUN_UNIT_RHS("2048") \
      HLORUN_UNIT_LHS(LOW0, HIGH0) HLORUN_UNIT_RHS("4096") HLORUN_UNIT_RHS("0")

inline constexpr std::array<NamedSource, 19> kUnitFunctions = {{
    // Palette 1; 64 bytes (0x40) and 16 rows (0x10) of each tile.
    {kUnitBegin,
     "static inline void hl_unit_begin(void) {\n"
     "  uint shape[16] __attribute__((aligned(64))) = {1, 0, 0, 0, 0x400040, 0x400040, 0x400040, 0x400040,\n"
     "                                                 0, 0, 0, 0, 0x10101010, 0x10101010, 0, 0};\n"
     "  __asm__ volatile(\"ldtilecfg (%0)\" : : \"r\"((ulong)(&shape[0])) : \"memory\");\n}\n"},
    {kUnitEnd, "static inline void hl_unit_end(void) { __asm__ volatile(\"tilerelease\" : : : \"memory\"); }\n"},
    {kUnitZero,
     "static inline void hl_unit_zero(void) {\n"
     "  __asm__ volatile(\"tilezero %%tmm0\\n\\ttilezero %%tmm1\\n\\ttilezero %%tmm2\\n\\ttilezero %%tmm3\" : : : "
     "\"memory\");\n}\n"},
    {kUnitLoad,
     "static inline void hl_unit_load(ulong at) {\n"
     "  __asm__ volatile(\"tileloadd (%0,%1,1), %%tmm0\\n\\ttileloadd 64(%0,%1,1), %%tmm1\\n\\t\"\n"
     "                   \"tileloadd 2048(%0,%1,1), %%tmm2\\n\\ttileloadd 2112(%0,%1,1), %%tmm3\"\n"
     "                   : : \"r\"(at), \"r\"(128ul) : \"memory\");\n}\n"},
    {kUnitStore,
     "static inline void hl_unit_store(ulong at) {\n"
     "  __asm__ volatile(\"tilestored %%tmm0, (%0,%1,1)\\n\\ttilestored %%tmm1, 64(%0,%1,1)\\n\\t\"\n"
     "                   \"tilestored %%tmm2, 2048(%0,%1,1)\\n\\ttilestored %%tmm3, 2112(%0,%1,1)\"\n"
     "                   : : \"r\"(at), \"r\"(128ul) : \"memory\");\n}\n"},
    {kUnitBf16, HLORUN_UNIT_STEPS("hl_unit_bf16", "tdpbf16ps")},
    {kUnitS8, HLORUN_UNIT_STEPS("hl_unit_s8", "tdpbssd")},
    {kUnitF32,
     "static inline void hl_unit_f32(ulong a, ulong row, ulong next, ulong b, long steps, ulong ahead, long lines) {\n"
     "  for (; steps > 0; --steps, a += next, b += 6144) {\n"
     "    for (long i = 0; i < lines; ++i, ahead += 64)\n"
     "      __asm__ volatile(\"prefetcht1 (%0)\" : : \"r\"(ahead));\n"
     "    __asm__ volatile(\"" HLORUN_UNIT_PARTS(
         "(%0,%2,1)", "1024(%0,%2,1)", "2048(%0,%2,1)", "3072(%0,%2,1)", "4096(%0,%2,1)",
         "5120(%0,%2,1)") "\"\n                     : : \"r\"(a), \"r\"(b), \"r\"(row) : \"memory\");\n  }\n}\n"},
    {kUnitF32Rows,
     "static inline void hl_unit_f32_rows(ulong a, ulong row, ulong part, ulong b, long steps) {\n"
     "  for (; steps > 0; --steps, a += 64, b += 6144) {\n"
     "    ulong a1 = a + part, a2 = a1 + part;\n"
     "    __asm__ volatile(\"" HLORUN_UNIT_PARTS(
         "(%0,%3,1)", "(%4,%3,1)", "(%5,%3,1)", "(%6,%3,1)", "(%7,%3,1)",
         "(%8,%3,1)") "\"\n                     : : \"r\"(a), \"r\"(b), \"r\"(64ul), \"r\"(row), \"r\"(a + 16 * row), \"r\"(a1),\n"
                      "                       \"r\"(a1 + 16 * row), \"r\"(a2), \"r\"(a2 + 16 * row) : \"memory\");\n  }\n}\n"},
    {kUnitFirstParts,
     "static inline void hl_unit_first_parts(ulong a, ulong row, ulong next, ulong b, long steps) {\n"
     "  for (; steps > 0; --steps, a += next, b += 6144)\n"
     "    __asm__ volatile(\"" HLORUN_UNIT_FIRST_RHS HLORUN_UNIT_LHS(
         "(%0,%3,1)",
         "(%4,%3,1)") "\"\n                     : : \"r\"(a), \"r\"(b), \"r\"(64ul), \"r\"(row), \"r\"(a + 16 * row) : "
                      "\"memory\");\n}\n"},
    {kUnitHasNan,
     "static inline int hl_unit_has_nan(ulong at) {\n"
     "  int16 nan = 0;\n"
     "  for (int i = 0; i < 64; ++i) nan |= isnan(vload16(i, (const float*)(at)));\n"
     "  return any(nan);\n}\n"},
    {kUnitReplaceNan,
     "static inline void hl_unit_replace_nan(ulong at, ulong from) {\n"
     "  for (int i = 0; i < 64; ++i) {\n"
     "    float16 sums = vload16(i, (const float*)(at)), others = vload16(i, (const float*)(from));\n"
     "    vstore16(select(sums, others, isnan(sums)), i, (float*)(at));\n  }\n}\n"},
    {kUnitPart,
     "static inline float16 hl_unit_part(float16 x) {\n"
     "  uint16 bits = as_uint16(x);\n"
     "  return as_float16((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);\n}\n"},
    {kUnitFirstPart,
     "static inline float16 hl_unit_first_part(float16 x) {\n"
     "  float16 cut = as_float16(as_uint16(x) & 0xffff0000u);\n"
     "  float16 part = select(cut, hl_unit_part(x), fabs(x) < 0x1.ffp127f);\n"
     "  return select(part, (float16)(NAN), isnan(x));\n}\n"},
    {kUnitPairs,
     "static inline uint16 hl_unit_pairs(float16 first, float16 second) {\n"
     "  return as_uint16(first) >> 16 | (as_uint16(second) & 0xffff0000u);\n}\n"},
    {kUnitRun,
     "static inline uint16 hl_unit_run(float16 first, float16 second) {\n"
     "  return (uint16)(as_uint8(convert_ushort16(as_uint16(first) >> 16)),\n"
     "                  as_uint8(convert_ushort16(as_uint16(second) >> 16)));\n}\n"},
    {kUnitBytes,
     "static inline uint16 hl_unit_bytes(char16 a, char16 b, char16 c, char16 d) {\n"
     "  return (uint16)(as_uint4(a), as_uint4(b), as_uint4(c), as_uint4(d));\n}\n"},
    {kUnitRow,
     "typedef uint16 hl_loose_words __attribute__((aligned(1)));\n"
     "static inline uint16 hl_unit_row(ulong at) { return *(__global const hl_loose_words*)(at); }\n"},
    {kUnitPartOfRow,
     "static inline uint16 hl_unit_part_of_row(ulong at, long bytes) {\n"
     "  uchar row[64] __attribute__((aligned(64)));\n"
     "  for (long i = 0; i < 64; ++i) row[i] = i < bytes ? ((__global const uchar*)(at))[i] : 0;\n"
     "  return *(uint16*)(&row[0]);\n}\n"},
}};

#undef HLORUN_UNIT_STEPS
#undef HLORUN_UNIT_PARTS
#undef HLORUN_UNIT_FIRST_RHS
#undef HLORUN_UNIT_LHS
#undef HLORUN_UNIT_RHS

}  // namespace hlorun::opencl
