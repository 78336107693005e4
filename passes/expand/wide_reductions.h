// Reductions of bf16, f16 and narrower floats are held in f32 from end to end, the reducer's other ops included.
//   before: s = bf16[8] reduce(x, z), dimensions={1}, to_apply=f
//   after:  s = convert(f32[8] reduce(convert(x), convert(z)), dimensions={1}, to_apply=f in f32)
// Reducers that only choose (maximum, and ...) stay: they round nothing. So do those with ops that are not elementwise
// on scalars, or that convert on purpose.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class WidenReductions : public Pass {
 public:
  std::string_view name() const override { return "widen-reductions"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
