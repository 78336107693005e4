// Products and the exchange of their operands or sums, a part at a time, so that each part is computed while the next
// is on its way. A gather of a dimension that the product keeps:
//   before: a = f32[8,4] all-gather(x), dimensions={0};  y = f32[8,6] dot(a, w)                       on 2 devices
//   after:  n = f32[4,4] collective-permute(x);  p = f32[4,6] dot(x, w);  q = f32[4,6] dot(n, w)
//           y = p and q, each written to the rows of the device that x or n came from
// A sum of products of which each device keeps a part:
//   before: y = f32[8,6] dot(a, w);  r = f32[4,6] reduce-scatter(y), dimensions={0}
//   after:  q = f32[4,6] dot(the other's rows of a, w);  m = f32[4,6] collective-permute(q)
//           p = f32[4,6] dot(own rows of a, w);  r = p + m, in the order of the devices
// Parts are added as a reduction associates, so the bits of sums stay; a product's stay where its kernel sums few rows
// as it sums many, which those for very few rows do not. Where the estimates (control/time_model.h, link.h) say that it
// gains, and exchanges run beside kernels at all (product_parts.h).
// OverlapCollectives makes the permutes starts and dones.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class WindowDots : public Pass {
 public:
  std::string_view name() const override { return "window-dots"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
