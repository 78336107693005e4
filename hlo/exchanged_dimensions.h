// Matrices in the last two dimensions, and what their transposes are made of.
#pragma once

#include <cstdint>
#include <vector>

#include "hlo/instruction.h"

namespace hlorun::hlo {

// The result's dimensions that a broadcast, iota or transpose names, with the last two exchanged. Of rank 2 at least.
inline std::vector<int64_t> ExchangedDimensions(const Instruction& x) {
  const int64_t rank = x.shape().rank();
  std::vector<int64_t> dimensions = x.dimensions();
  for (int64_t& d : dimensions) d = d < rank - 2 ? d : 2 * rank - 3 - d;
  return dimensions;
}

}  // namespace hlorun::hlo
