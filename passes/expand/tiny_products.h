// Products with a matrix of a few elements (points by a rotation, colours by a mixing matrix), and of batches of such
// matrices with vectors, become sums of elementwise products: a loop over the rows, together with what is around it,
// where a product's kernel would leave most of its lanes, or of its tile, empty. Both device classes.
//
//   before: f32[100000,3] dot(f32[100000,3] x, f32[3,3] w), contracting {1}, {0}
//   after:  0 + broadcast(x[:,0]) * broadcast(w[0,:]) + broadcast(x[:,1]) * broadcast(w[1,:]) + ...
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class TinyProducts : public Pass {
 public:
  std::string_view name() const override { return "tiny-products"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
