// Orders every control computation for execution: list order becomes execution order, and the module is_scheduled.
//
// Of a few topological orders (the text's, depth first from the root with the hungriest operand first, and a list
// schedule that runs next what frees most) the one with the smallest peak of live bytes is kept. Instructions with side
// effects keep their order, so that all ranks of a job communicate in the same one. An in-place update runs after the
// other readers of what it overwrites where dependencies allow it.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class Schedule : public Pass {
 public:
  std::string_view name() const override { return "schedule"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
