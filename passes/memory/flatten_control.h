// Gives each computation that the runtime executes exactly one caller, by cloning those with several: memory analyses
// then put every instruction at one place of one line of time.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class FlattenControl : public Pass {
 public:
  std::string_view name() const override { return "flatten-control"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
