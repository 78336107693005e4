// Windows that reach from each element to the beginning or the end of one dimension: cumulative sums and their kin.
#pragma once

#include <cstdint>
#include <optional>

#include "hlo/instruction.h"

namespace hlorun::hlo {

struct CumulativeWindow {
  int64_t dimension = 0;
  bool reverse = false;  // to the end
};

// What `op`, a reduce-window, is along the only dimension that its window is wider than one in; nothing for other ops
// and windows.
std::optional<CumulativeWindow> CumulativeWindowOf(const Instruction& op);

}  // namespace hlorun::hlo
