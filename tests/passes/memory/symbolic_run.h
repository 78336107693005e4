// An independent check of a buffer assignment: executes the scheduled module on symbols instead of numbers.
//
// Every write leaves a fresh symbol in the bytes it covers, every read demands the symbol that the instruction's
// operand must hold. Loops run two iterations, every branch of a conditional runs from the same state. Knows nothing of
// live ranges, value sets or copies.
#pragma once

#include <string>

#include "hlo/module.h"
#include "passes/kernel_model.h"
#include "passes/memory/buffer_assignment.h"

namespace hlorun::passes {

// Empty when every read finds what it must; else the first violation.
std::string CheckSymbolically(const hlo::Module& module, const BufferAssignment& buffers, const KernelModel& kernels);

}  // namespace hlorun::passes
