// A concatenation of what products and convolutions make becomes a chain of updates of one array, which their kernels
// store to where the part belongs (fusion/stored_result.h), instead of into arrays of their own that are then copied.
//
//   before: a = f32[64,32] dot(...)   b = f32[64,64] maximum(dot(...), zeros)   c = f32[64,96] concatenate(a, b)
//   after:  u = f32[64,96] custom-call(), custom_call_target="hlorun.uninitialized"
//           v = f32[64,96] dynamic-update-slice(u, a, 0, 0)    c = f32[64,96] dynamic-update-slice(v, b, 0, 32)
//
// A padded product likewise, whose edges are parts of one number.
//
// Where the whole has to lie in memory (consumers that compute it where they read it keep it), and products make more
// of it than the second cache holds.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class PartsInPlace : public Pass {
 public:
  std::string_view name() const override { return "parts-in-place"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
