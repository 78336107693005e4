// The value that changes nothing, by reducing opcode.
#pragma once

#include "hlo/literal.h"
#include "hlo/opcode.h"

namespace hlorun::passes {

// A scalar i with op(i, x) = x for every x of `type`. `opcode` is one that hlo::ReducerOpcode returns.
hlo::Literal ReducerIdentity(hlo::Opcode opcode, hlo::ElementType type);

}  // namespace hlorun::passes
