// The loop of passes that replace instructions one at a time.
#pragma once

#include <functional>

#include "hlo/module.h"

namespace hlorun::passes {

// Calls `rewrite` for each instruction, computations that are called before their callers; it says whether it replaced
// the instruction. What comes in its place takes part in the order, and computations that nothing calls any more go.
bool RewriteEach(hlo::Module& module, const std::function<bool(hlo::Instruction*)>& rewrite);

}  // namespace hlorun::passes
