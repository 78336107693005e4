// Kernels that share nothing become one launch, each with work-groups of its own: an optimiser's update of each of a
// network's arrays, the conversions of its weights.
//
//   before: a = fusion(p, dp)  ...  b = fusion(q, dq)
//   after:  r = fusion(p, dp, q, dq), kind=kCustom, calls={ a, b }, backend_config={"region":"side_by_side"}
//
// Runs on a scheduled module, and keeps its order but for what it joins: a kernel may run later, up to its first
// reader, or earlier, after what makes its operands. It stays on its side of collectives, host steps and whatever else
// has effects, so that what hides behind what stays. Joined are kernels of the same ops (of arrays of any sizes:
// different ones would be compiled in each company anew) that take less time than their launch, as many as a launch has
// arguments for, where the arrays that live longer so fit beneath the module's peak (or 1/64, or a megabyte, above it).
// What is constant is left alone, since it runs but once; so are updates of a part of an array in place, kernels that
// end at a size, and all of a module under --memory_limit. GPU class only (docs/performance.md).
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class HorizontalFusion : public Pass {
 public:
  std::string_view name() const override { return "horizontal-fusion"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
