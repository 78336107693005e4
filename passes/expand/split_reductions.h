// Splits a reduction of much to little into two, so that many cores and lanes share it.
//
//   before: f32[64] reduce(f32[8,112,112,64]), dimensions {0,1,2}
//   after:  f32[64] reduce(f32[64,64] reduce(f32[64,1568,64] reshape(x)), dimensions {1}), dimensions {0}
//
// The tree depends on shapes alone, never on the device or its cores, so results stay the same everywhere. Only for
// reducers that are one associative opcode. Nothing on GPU class (codegen/reduction_share.h).
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class SplitReductions : public Pass {
 public:
  std::string_view name() const override { return "split-reductions"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
