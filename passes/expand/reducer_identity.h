// The value that changes nothing, by reducing opcode.
#pragma once

#include <optional>

#include "hlo/computation.h"
#include "hlo/literal.h"
#include "hlo/opcode.h"

namespace hlorun::passes {

// A scalar i with op(i, x) = x for every x of `type`. `opcode` is one that hlo::ReducerOpcode returns.
hlo::Literal ReducerIdentity(hlo::Opcode opcode, hlo::ElementType type);

// The same of the computation of a reduction; none where it is more than a single op of two scalars.
std::optional<hlo::Literal> ReducerIdentity(const hlo::Computation& reducer, hlo::ElementType type);

}  // namespace hlorun::passes
