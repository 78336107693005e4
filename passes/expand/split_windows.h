// Windows that share most of what they reduce, in stages that each reduce less: along one dimension after another, and
// along a dimension by runs and then by what is a run apart.
//
//   before: y = reduce-window(x), window={size=15x15 pad=7_7x7_7}                                        225 elements
//   after:  u = reduce-window(x), window={size=15x1 pad=7_7x0_0}                                          15 + 15
//           y = reduce-window(u), window={size=1x15 pad=0_0x7_7}
//   before: y = reduce-window(x), window={size=101}                                                      101 elements
//   after:  u = reduce-window(x), window={size=10}                                                        10 + 10 + 1
//           y = reduce-window(u), window={size=10 rhs_dilate=10} + reduce-window(x), window={size=1 pad=-100_0}
//
// Running sums would need fewer operations, but each from the one before, and f32 would drift; these keep the vectors
// and sum in trees. Only for reducers that are one associative opcode, where an estimate from the shapes alone says
// that the stages' arrays cost less than what they spare. Cumulative windows have kernels of their own.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class SplitWindows : public Pass {
 public:
  std::string_view name() const override { return "split-windows"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
