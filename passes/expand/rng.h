// rng becomes rng-bit-generator on the run's state, and arithmetic: uniform in [a, b), or normal by Box and Muller.
//
// Which numbers come is not specified, only their distribution; the state advances with each one.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class ExpandRng : public Pass {
 public:
  std::string_view name() const override { return "expand-rng"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
