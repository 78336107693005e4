// Collectives of a program that runs on one device: reductions, gathers and exchanges give back what went in; a permute
// gives its operand where it sends to itself, zeros where nobody sends.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class RemoveLoneCollectives : public Pass {
 public:
  std::string_view name() const override { return "remove-lone-collectives"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
