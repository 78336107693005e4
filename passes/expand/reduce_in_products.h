// A reduction of a product's result that nobody else reads becomes one of groups of its rows, which the product's
// kernel stores in the result's stead (fusion/stored_result.h), and one of those, which are few.
//
//   before: d = f32[4096,4096] dot(x, y), ...   e = negate(d)   s = f32[4096] reduce(e, 0), dimensions={0}
//   after:  g = f32[128,4096] reduce-window(e, 0), window={size=32x1 stride=32x1}
//           s = f32[4096] reduce(g, 0), dimensions={0}
//
// Where columns are reduced (dimensions={1}), the product is that of exchanged operands. Nearest neighbours (argmin),
// kernel densities, potentials: the matrix of distances is not stored. On CPU class where the matrix is larger than
// caches; on GPU class a group is what a work-item has of neighbouring rows, four of floats.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class ReduceInProducts : public Pass {
 public:
  std::string_view name() const override { return "reduce-in-products"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
