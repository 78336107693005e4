// How many work-groups share blocks of equal work that they take in turns (group g: blocks g, g + groups ...).
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/opencl/codegen/ceil_div.h"

namespace hlorun::opencl {

// What the fullest unit has to do, in blocks, where units are given runs of groups of about equal lengths (12 blocks in
// 8 groups are two each for the first four, and one of two units has 8).
constexpr int64_t FullestUnit(int64_t blocks, int64_t groups, int64_t units) {
  return CeilDiv(groups, units) * CeilDiv(blocks, groups);
}

// At most `most` groups: those that leave the fullest unit the least.
constexpr int64_t EvenGroups(int64_t blocks, int64_t most, int64_t units) {
  int64_t best = std::min(blocks, most);
  for (int64_t groups = best; groups > units; --groups) {
    if (FullestUnit(blocks, groups, units) < FullestUnit(blocks, best, units)) best = groups;
  }
  return best;
}

}  // namespace hlorun::opencl
