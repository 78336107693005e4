// Which way a computation compares.
#pragma once

#include <optional>

#include "hlo/computation.h"

namespace hlorun::hlo {

// a OP b as b OP a.
ComparisonDirection Mirrored(ComparisonDirection direction);

// Of a comparison of the first two parameters, the first on the left; nothing for any other computation.
std::optional<ComparisonDirection> DirectionOf(const Computation& comparator);

}  // namespace hlorun::hlo
