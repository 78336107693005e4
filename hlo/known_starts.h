// Where a dynamic-slice or a dynamic-update-slice begins, when constants say so.
#pragma once

#include <optional>

#include "hlo/instruction.h"

namespace hlorun::hlo {

// Clamped, as the op clamps them, so that the slice lies inside of the array. nullopt where a start is no scalar
// constant.
std::optional<Dims> KnownStarts(const Instruction& op);

}  // namespace hlorun::hlo
