// What the code of an instruction's kernels follows from.
#pragma once

#include <string>

#include "hlo/instruction.h"

namespace hlorun::passes {

// Equal for instructions that do the same to operands of the same shapes: fusions by their computations, all else by
// opcode, attributes, and the operands' shapes. Not what depends on where arrays lie, or on what makes them.
std::string MeaningOf(const hlo::Instruction& instruction);

}  // namespace hlorun::passes
