// Computations that stand in a module of their own.
#pragma once

#include "hlo/module.h"

namespace hlorun::passes {

// A copy, in `module`, of `original` and of all that it calls. Those that `copies` has are not copied again; it gets
// the others.
hlo::Computation* CopyComputation(const hlo::Computation& original, hlo::Module& module, hlo::ComputationMap& copies);

}  // namespace hlorun::passes
