// An all-reduce of which each device keeps only its own part becomes a reduce-scatter: half of the bytes.
//   before: a = f32[8,4] all-reduce(x);  b = f32[8,4] multiply(a, s);  r = f32[2,4] dynamic-slice(b, 2 * partition-id,
//   0) after:  a = f32[2,4] reduce-scatter(x), dimensions={0};  r = f32[2,4] multiply(a, slice of s)
// The starts may be any arithmetic of partition-id and replica-id, tables of it included: they are evaluated for each
// device, and must give the place of the device in its group. Whoever else reads the sum must end in the same slices by
// way of elementwise ops. The elements of a tuple's sum are treated one by one. The same bits: a reduction associates
// alike in both.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class ScatterReductions : public Pass {
 public:
  std::string_view name() const override { return "scatter-reductions"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
