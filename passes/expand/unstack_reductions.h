// A reduction over a dimension along which arrays lie side by side, one element of each, becomes operations of these
// arrays: as windows are summed that were put together of shifted images. A loop over that dimension would ask at each
// step for the array, and what is loaded from it would be masked.
//
//   before: f32[28,28,64] reduce(multiply(w, concatenate(a, b, c)), 0), dimensions={2}, of f32[28,28,3,64]
//   after:  0 + w[:,:,0] * a + w[:,:,1] * b + w[:,:,2] * c
//
// Sums keep their order. Both device classes.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class UnstackReductions : public Pass {
 public:
  std::string_view name() const override { return "unstack-reductions"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
