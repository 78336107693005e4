// Replaces instructions whose operands are all constants by their value, as the evaluator computes it.
//
// Bounded: an instruction is left alone when its result would be larger than the options allow or than what it is made
// of (a broadcast or iota is smaller as it is), or when the evaluator gives up at the options' step limit. Never folds
// effects, collectives or device ids.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class ConstantFolding : public Pass {
 public:
  std::string_view name() const override { return "constant-folding"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
