// Ops that compute each element of their result from those at its place.
#pragma once

#include "hlo/instruction.h"

namespace hlorun::hlo {

// Those of the trait, and clamp, whose bounds may be scalars.
inline bool IsElementwise(const Instruction& op) { return op.Has(kElementwise) || op.Is(Opcode::kClamp); }

}  // namespace hlorun::hlo
