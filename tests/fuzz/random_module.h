// Random valid programs on one device: every family of ops, over integers (exact) and floats that stay of moderate
// size.
#pragma once

#include <cstdint>
#include <string>

namespace hlorun::fuzz {

// HLO text; the same for the same seed. Comparisons, indices and branches depend on integers only, so that rounding
// never decides what happens.
std::string RandomModule(uint64_t seed);

}  // namespace hlorun::fuzz
