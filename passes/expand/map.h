// map becomes the mapped computation's instructions, over whole arrays.
//
// Left alone where that computation is more than elementwise ops, clamps and constants.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class ExpandMap : public Pass {
 public:
  std::string_view name() const override { return "expand-map"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
