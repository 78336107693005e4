// Instructions of codegen/wide_fragments.h, from comments in PTX.
#pragma once

#include <string>
#include <string_view>

#include "backends/opencl/codegen/wide_fragments.h"

namespace hlorun::opencl {

// NVIDIA's binary, a PTX text, with its marked comments as instructions, for the target that has them.
inline std::string WithMarkedInstructions(std::string ptx) {
  constexpr std::string_view kTarget = ".target sm_90", kOwn = "a";
  ptx.resize(ptx.find_last_not_of('\0') + 1);
  if (const size_t at = ptx.find(kTarget); at != std::string::npos && ptx[at + kTarget.size()] != kOwn[0])
    ptx.insert(at + kTarget.size(), kOwn);
  const std::string_view mark = kInstructionMark;
  for (size_t at = ptx.find(mark); at != std::string::npos; at = ptx.find(mark, at)) ptx.erase(at, mark.size());
  return ptx;
}

}  // namespace hlorun::opencl
