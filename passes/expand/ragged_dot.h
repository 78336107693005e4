// ragged-dot and scaled-dot become dots.
//
// ragged-dot cuts a dimension of the left side into consecutive groups whose sizes are data. Free rows: a loop over the
// groups, in which each takes the rows that are its own from a whole product. Contracted: both sides, masked, with the
// group as a batch dimension. Batch: a dot; what lies behind the last group is zero. Nothing of another group,
// infinities included, reaches a result. scaled-dot multiplies each side by its scale, spread over the blocks that it
// stands for, first.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class ExpandRaggedDot : public Pass {
 public:
  std::string_view name() const override { return "expand-ragged-dot"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

class ExpandScaledDot : public Pass {
 public:
  std::string_view name() const override { return "expand-scaled-dot"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
