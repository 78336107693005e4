// Checks a module against XLA's rules: shapes, attribute ranges, called computations' signatures, cycles, recursion,
// alias and donation entries, control computations, collectives. Throws Error at the first violation, naming the
// computation and instruction.
#pragma once

#include "hlo/module.h"
#include "hlo/module_source.h"

namespace hlorun::hlo {

// Errors carry the place in the source, as far as it is known.
void VerifyModule(const Module& module, const ModuleSource& source = {});

}  // namespace hlorun::hlo
