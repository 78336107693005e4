// Who calls a computation.
#pragma once

#include <unordered_map>

#include "hlo/module.h"

namespace hlorun::hlo {

// Of a computation that several instructions call, as reducers may be, one of them. Bodies, conditions, branches and
// fusions have one caller.
using Callers = std::unordered_map<const Computation*, Instruction*>;

inline Callers CallersOf(const Module& module) {
  Callers callers;
  for (const auto& computation : module.computations()) {
    for (const auto& instruction : computation->instructions()) {
      for (const Computation* called : instruction->called_computations()) callers[called] = instruction.get();
    }
  }
  return callers;
}

}  // namespace hlorun::hlo
