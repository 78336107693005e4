// Arrays that are put side by side, one element of each along the dimension.
#pragma once

#include <algorithm>

#include "hlo/instruction.h"

namespace hlorun::hlo {

// Whether `x` concatenates arrays that are one along `dimension`, along which it puts them.
inline bool IsStack(const Instruction& x, int64_t dimension) {
  return x.Is(Opcode::kConcatenate) && x.dimensions()[0] == dimension &&
         std::all_of(x.operands().begin(), x.operands().end(),
                     [&](const Instruction* part) { return part->shape().dimension(dimension) == 1; });
}

}  // namespace hlorun::hlo
