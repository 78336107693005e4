// Seeded inputs for a module that is run without arrays.
#pragma once

#include <cstdint>
#include <set>

#include "hlo/literal.h"

namespace hlorun {

struct SeedOptions {
  uint64_t seed = 0;
  int64_t integers = 4;      // integer arrays hold 0 .. integers - 1
  std::set<int64_t> normal;  // slots that are data rather than weights: normal with deviation 1
};

// Floats of rank >= 2: normal with deviation max(0.02, fan_in ** -0.5), fan_in the product of all dimensions but the
// last; of rank 0 and 1: uniform in [0.5, 1.5), so that variances are positive. The same seed and slot give the same
// array.
hlo::Literal SeededLiteral(const hlo::Shape& shape, int64_t slot, const SeedOptions& options);

}  // namespace hlorun
