// Reduce-windows whose kernels take in what is computed around them: each result element by a loop over its window's
// taps (a pooling), and not from the one before (cumulative_window.h).
#pragma once

#include "hlo/instruction.h"

namespace hlorun::passes {

bool IsPooling(const hlo::Instruction& instruction);

// Whether the taps of `pooling` may compute `instruction`, which they read: what keeps each element's place, so that
// vectors of results read vectors.
bool FitsTaps(const hlo::Instruction& instruction, const hlo::Instruction& pooling);

// Whether `instruction` is less for the taps of `pooling` to do than what it makes is to write and read: bf16 as f32,
// which is a shift.
bool IsFreeInTaps(const hlo::Instruction& instruction, const hlo::Instruction& pooling);

}  // namespace hlorun::passes
