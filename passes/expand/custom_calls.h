// Custom-calls that only name an elementwise function (mhlo.erf, mhlo.asin, ...) become the opcode of that function.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class ExpandCustomCalls : public Pass {
 public:
  std::string_view name() const override { return "expand-custom-calls"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
