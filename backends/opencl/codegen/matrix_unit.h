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

inline constexpr std::array<NamedSource, 9> kUnitFunctions = {{
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

}  // namespace hlorun::opencl
