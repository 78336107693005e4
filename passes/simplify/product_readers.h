// What products alone read.
#pragma once

#include "hlo/instruction.h"

namespace hlorun::passes {

// Whether all users of `value` are dots, next to it or behind transposes and reshapes. Such a value is in memory before
// they begin, in the order in which it is made: dots read transposed operands as they are.
bool OnlyProductsRead(const hlo::Instruction& value);

}  // namespace hlorun::passes
