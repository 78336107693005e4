// Checks a module against XLA's rules: shapes, attribute ranges, called computations' signatures, cycles, recursion,
// alias and donation entries, control computations, collectives. Throws Error at the first violation, naming the
// computation and instruction.
#pragma once

#include "hlo/module.h"

namespace hlorun::hlo {

void VerifyModule(const Module& module);

}  // namespace hlorun::hlo
