// Moves reshapes of products and convolutions below the elementwise ops and reductions that follow them, so that those
// have the product's own dimensions and become its epilogue, or one row kernel (softmax).
//
//   before: r = f32[32,196,768] reshape(dot)  s = f32[32,196,768] add(r, broadcast(bias))    dot is f32[6272,768]
//   after:  a = f32[6272,768] add(dot, broadcast(bias))  s = f32[32,196,768] reshape(a)
//
// A reduction of what is read in its own dimensions, too, reduces it in those: a softmax over [h, w] as one dimension.
// Other operands are reshaped the other way: broadcasts are broadcast to the new dimensions, where they can be, and
// arrays in memory cost nothing. Exact. Runs after the last simplification, which would like its reshapes elsewhere.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class SinkReshapes : public Pass {
 public:
  std::string_view name() const override { return "sink-reshapes"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
