// Comparators of sorts that order by several keys, of which each decides where those before it are equal.
//
// Floats are in total order, or behind a function that makes one representative of what is equal, as JAX's keys are.
#pragma once

#include <vector>

#include "hlo/computation.h"

namespace hlorun::passes {

// The comparisons of the keys (KeyComparison), what decides first before others; empty where `comparator` has no such
// form. One key is a list of one.
std::vector<const hlo::Instruction*> LexicographicKeys(const hlo::Computation& comparator);

}  // namespace hlorun::passes
