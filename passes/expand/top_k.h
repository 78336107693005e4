// topk, and the custom-calls TopK and mhlo.topk, become topk where the backend has a kernel for it, else a
// stable sort with positions, and slices of its first k.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class ExpandTopK : public Pass {
 public:
  std::string_view name() const override { return "expand-top-k"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
