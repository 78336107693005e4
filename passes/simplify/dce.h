// Dead code elimination: instructions without users or effect, and computations that nothing reaches.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

// Of one computation; parameters stay. Returns whether there were any.
bool RemoveDeadInstructions(hlo::Computation* computation);

class DeadCode : public Pass {
 public:
  std::string_view name() const override { return "dce"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
