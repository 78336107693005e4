// The custom-calls ApproxTopK and PartialReduce become a sort by their comparator and its first elements: exact, which
// is a recall of one.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class ExpandApproxTopK : public Pass {
 public:
  std::string_view name() const override { return "expand-approx-top-k"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
