// Values for which --memory_limit has no room are computed again in front of their later readers.
//
//   before: h = f32[64,1024] fusion(x, w)  y = f32[64,8] fusion(h, v)  ...  g = f32[1024,8] fusion(h, dy)
//   after:  h = f32[64,1024] fusion(x, w)  y = f32[64,8] fusion(h, v)  ...
//           h.again = f32[64,1024] fusion(x, w)  g = f32[1024,8] fusion(h.again, dy)
//
// Runs on a scheduled module and keeps its order. At the moment of most memory it takes what frees most bytes for the
// least time (recomputation.h), until the plan fits. It is the same kernel on the same operands, so the same bits.
// Never repeats side effects, collectives, host calls, loops, branches or in-place updates, nor what tuples and results
// hold. Nothing happens without a limit, or where the plan fits as it is.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class Rematerialize : public Pass {
 public:
  std::string_view name() const override { return "rematerialize"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
