// Memory as it is found, for the program to write before it reads it: a custom-call without operands, for which no
// kernel runs. The evaluator makes zeros.
#pragma once

#include "hlo/builder.h"

namespace hlorun::passes {

bool IsUninitialized(const hlo::Instruction& instruction);

// An array of its own: nothing may merge two of them.
hlo::Instruction* Uninitialized(hlo::Builder& build, const hlo::Shape& shape);

}  // namespace hlorun::passes
