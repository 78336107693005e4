// Simplifies while and conditional.
//
//   - a conditional whose predicate is a constant becomes its branch; one whose branches are one computation, that;
//   - a while of no trip becomes its operand, one of a single trip its body, once;
//   - a carried element that the body passes on unchanged and that starts as a constant becomes that constant inside;
//   - a carried element that nothing needs, inside or after the loop, goes.
// Branches and bodies with effects are moved whole, never dropped when they would run.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class SimplifyControlFlow : public Pass {
 public:
  std::string_view name() const override { return "control-flow"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
