// A reduction over outer dimensions and a short minor one becomes two: the outer dimensions first, with whole vectors
// of the minor dimensions side by side, then the short one over the little that is left.
//
//   before: f32[32,32] reduce(f32[32,56,56,32,2]), dimensions {1,2,4}     (the sums of a group norm)
//   after:  f32[32,32] reduce(f32[32,32,2] reshape(f32[32,64] reduce(f32[32,3136,64]), dimensions {1})), dimensions {2}
//
// The elementwise ops that make the operand are rebuilt over the merged dimensions, so that they vectorise too. Only
// for reducers that are one associative opcode.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class ReduceMajorFirst : public Pass {
 public:
  std::string_view name() const override { return "reduce-major-first"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
