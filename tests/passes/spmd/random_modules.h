// Random programs with random annotations, over s32: wrapping sums are exact in any order.
#pragma once

#include <cstdint>
#include <string>

namespace hlorun::passes {

// HLO text for `partitions` devices; the same for the same seed.
std::string RandomAnnotatedModule(uint64_t seed, int64_t partitions);

}  // namespace hlorun::passes
