// Replaces conditionals whose branches are pure and cheap by both branches and a select.
//
//   before: r = conditional(p, x, y), true_computation=t, false_computation=f
//   after:  r = select(p, t(x), f(y))
//
// An element is taken from one branch or the other, so a NaN of the branch not taken goes nowhere. Never touches a
// branch with effects, host calls, collectives or a loop that may not end; under --branches=select it does whatever the
// branches cost, under predicate and host nothing.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class ConditionalToSelect : public Pass {
 public:
  std::string_view name() const override { return "conditional-to-select"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

// Why both branches of `conditional` cannot be computed; empty when they can.
std::string WhyNotBothBranches(const hlo::Instruction& conditional);

}  // namespace hlorun::passes
