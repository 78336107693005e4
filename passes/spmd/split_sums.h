// Sums over the devices of products that no other work is left to hide, in parts along a dimension that the product
// keeps: a part's sum is under way while the next part is computed.
//   before: y = f32[8,6] dot(x, w);  r = f32[8,6] all-reduce(y)
//   after:  p = f32[4,6] dot(x[0:4], w);  q = f32[4,6] dot(x[4:8], w)
//           r = f32[8,6] concatenate(all-reduce(p), all-reduce(q)), dimensions={0}
// The last gradient of a training step, and each layer of a network whose weights are cut, have nothing else to run
// beside. A sum's bits do not depend on the parts; a product's stay where its kernel sums few rows as it sums many,
// which those for very few rows do not. Where the estimates (control/time_model.h, link.h) say that it gains, and
// exchanges run beside kernels at all (product_parts.h). OverlapCollectives makes starts and dones of the sums.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class SplitSums : public Pass {
 public:
  std::string_view name() const override { return "split-sums"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
