// Common subexpression elimination: equal pure instructions of a computation are merged, and so are equal reducers,
// comparators and other computations that are called but not executed by control flow.
//
// Values with side effects, collectives and control flow stay as they are.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class CommonSubexpressions : public Pass {
 public:
  std::string_view name() const override { return "cse"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
