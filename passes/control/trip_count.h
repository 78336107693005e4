// Trip counts of while loops that count: init constant, step constant, bound constant, compared by LT/LE/GT/GE/NE.
#pragma once

#include <cstdint>
#include <optional>

#include "hlo/instruction.h"

namespace hlorun::passes {

// The integer of at most 63 bits that `x` is, a constant or a copy of one; nullopt otherwise.
std::optional<int64_t> ScalarInteger(const hlo::Instruction* x);

// The number of iterations of `loop`, when its condition depends on one carried integer that starts at a constant, is
// stepped by a constant and compared with a constant; nullopt otherwise, and where a condition has effects besides.
std::optional<int64_t> TripCountOf(const hlo::Instruction& loop);

// The most iterations of `loop`: its trip count, or that of the counter where its condition is a conjunction of a
// counter's test and others.
std::optional<int64_t> TripBoundOf(const hlo::Instruction& loop);

// An integer that `loop` carries, which starts at a constant; a constant is added to it in each trip.
struct Counter {
  int64_t start = 0, step = 0;
};
// Element `index` of what `loop` carries as a counter; nullopt where it is none.
std::optional<Counter> CounterOf(const hlo::Instruction& loop, int64_t index);

}  // namespace hlorun::passes
