// Reducers whose types are not those of the arrays: the arrays are converted, so that a kernel meets one type.
//   before: r = f32[5] scatter(x: bf16, i, u: bf16), to_apply=f32 sum
//   after:  r = f32[5] scatter(convert(x), i, convert(u)), to_apply=f32 sum
// A reducer whose accumulator and value differ is wrapped: it runs on the wider type and rounds to its own inside. Of a
// select-and-scatter the comparison is wrapped too, and the result converted to the operand's type.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class MatchReducerTypes : public Pass {
 public:
  std::string_view name() const override { return "match-reducer-types"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
