// Keeps control edges between instructions with effects only.
//
// XLA's own late passes order pure instructions by control edges, mostly to keep its copies safe; hlorun inserts its
// own copies and schedules anew. An edge through a pure instruction becomes one between its ends.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class DropControlEdges : public Pass {
 public:
  std::string_view name() const override { return "control-edges"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
