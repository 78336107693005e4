// Arithmetic of bf16 whose result nobody needs in bf16 is done in f32, without the rounding in between, as XLA:CPU
// does.
//   before: y = bf16[8] multiply(a, b), r = f32[8] convert(y), all users of y being such converts
//   after:  r = f32[8] multiply(convert(a), convert(b))
// One op deep: a and b keep their rounding, as they do in XLA:CPU. What rounds nothing (a choice, a sign) stays, and so
// do scalars: a reducer's rounding is meant.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class SkipRounding : public Pass {
 public:
  std::string_view name() const override { return "skip-rounding"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
