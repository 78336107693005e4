// Moves what every trip of a loop computes alike in front of the loop.
//
//   before: while((i, x, w)), body={ ... y = dot(w, w)  x' = add(x, y) ... }
//   after:  y = dot(w, w)  while((i, x, w, y)), body={ ... x' = add(x, y) ... }
//
// Moves what is worth memory for as long as the loop runs: products, reductions, calls of functions and other work,
// with the cheap ops that lead to it; never what fusion computes anew for nothing (broadcasts, conversions, a few
// additions), nor what would be larger than what it is computed from. Effects and control flow stay, but for
// collectives of a program that was cut from one of whole arrays (spmd/spmd.h): one exchange in front of the loop for
// one in every trip.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class HoistLoopInvariants : public Pass {
 public:
  std::string_view name() const override { return "hoist-loop-invariants"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
