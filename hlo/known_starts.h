// Where a part begins in an array: of a dynamic-slice or a dynamic-update-slice, when constants say so; of a
// concatenation.
#pragma once

#include <optional>
#include <vector>

#include "hlo/instruction.h"

namespace hlorun::hlo {

// Clamped, as the op clamps them, so that the slice lies inside of the array. nullopt where a start is no scalar
// constant.
std::optional<Dims> KnownStarts(const Instruction& op);

// By operand of a concatenate.
std::vector<Dims> OperandStarts(const Instruction& concatenate);

}  // namespace hlorun::hlo
