// scan becomes a while loop over the slices of its inputs: outputs are written in place, carries go around.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class ExpandScan : public Pass {
 public:
  std::string_view name() const override { return "expand-scan"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
