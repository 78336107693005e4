// A product by a slice of what a loop does not change becomes a slice of one product by all of it, which
// HoistLoopInvariants then moves in front of the loop: a recurrent network's inputs meet their weights at once.
//
//   before: x_t = dynamic-slice(xs, t)   y = dot(x_t, w)
//   after:  ys = dot(xs, w)              y = dynamic-slice(ys, t)
//
// Where the loop is known to take about as many trips as there are slices, a slice has few rows, and the result of all
// is not much larger than what it is made of. The start of a slice is kept within bounds in the same way on both sides.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class SliceAfterProducts : public Pass {
 public:
  std::string_view name() const override { return "slice-after-products"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
