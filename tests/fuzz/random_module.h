// Random valid programs on one device.
#pragma once

#include <cstdint>
#include <string>

namespace hlorun::fuzz {

enum class ModuleStyle {
  // Every family of ops, over integers (exact) and floats that stay of moderate size. Comparisons, indices and branches
  // depend on integers only, so that rounding never decides what happens.
  kMixed,
  // Loops in loops and branches of many small operations on few shapes, as simulations, searches and games are. Floats
  // are whole numbers that their types hold exactly: every result is exact, and comparisons of floats may decide.
  kSmallLoops,
};

// HLO text; the same for the same seed.
std::string RandomModule(uint64_t seed, ModuleStyle style);

}  // namespace hlorun::fuzz
