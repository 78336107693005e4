// Copies from global to local memory that run while a work-item goes on ("cp.async" of the PTX manual, from sm_80 on:
// every device that multiplies fragments of bf16). Each moves 16 bytes, aligned to as many at both ends.
#pragma once

#include <array>
#include <string>

#include "backends/opencl/codegen/named_source.h"

namespace hlorun::opencl {

// (ulong to, ulong from, int bytes): addresses (ir::Address); 16 bytes, or none, and zeros instead.
// Of whole lines of the caches, past the first one; and of parts of them, the rest of which is wanted soon.
inline constexpr const char* kCopyLines = "hl_copy_lines";
inline constexpr const char* kCopyPartsOfLines = "hl_copy_parts_of_lines";
inline constexpr const char* kCopyPlainly = "hl_copy_plainly";  // for tests: at once, on any device
// Ends a round of copies.
inline constexpr const char* kCloseCopies = "hl_close_copies";

#define HLORUN_COPY(NAME, CACHE)          \
  "static inline void " NAME              \
  "(ulong to, ulong from, int bytes) {\n" \
  "  __asm__ volatile(\"cp.async." CACHE  \
  ".shared.global [%0], [%1], 16, %2;\" : : \"r\"((uint)(to)), \"l\"(from), \"r\"(bytes) : \"memory\");\n}\n"

inline constexpr std::array<NamedSource, 4> kCopyFunctions = {{
    {kCopyLines, HLORUN_COPY("hl_copy_lines", "cg")},
    {kCopyPartsOfLines, HLORUN_COPY("hl_copy_parts_of_lines", "ca")},
    {kCopyPlainly,
     "static inline void hl_copy_plainly(ulong to, ulong from, int bytes) {\n"
     "  *(__local uint4*)(to) = bytes == 16 ? *(__global const uint4*)(from) : (uint4)(0);\n}\n"},
    {kCloseCopies,
     "static inline void hl_close_copies(void) {\n"
     "  __asm__ volatile(\"cp.async.commit_group;\" : : : \"memory\");\n}\n"},
}};

#undef HLORUN_COPY

// A function without arguments that returns once all but the last `rounds` are there.
inline std::string WaitForCopies(int rounds) { return "hl_wait_for_copies_" + std::to_string(rounds); }
inline std::string WaitForCopiesSource(int rounds) {
  return "static inline void " + WaitForCopies(rounds) + "(void) {\n  __asm__ volatile(\"cp.async.wait_group " +
         std::to_string(rounds) + ";\" : : : \"memory\");\n}\n";
}

}  // namespace hlorun::opencl
