// batch-norm-training, -inference and -grad become arithmetic and reductions over all dimensions but the feature's.
//
// Statistics of 16-bit operands are computed in f32; variances are those of the whole population.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class ExpandBatchNorm : public Pass {
 public:
  std::string_view name() const override { return "expand-batch-norm"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
