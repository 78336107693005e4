// An argmax, or its like, of long rows becomes that of neighbours' groups, and of the groups: rows of a length that one
// vector's lanes take whole (codegen/turned_rows.h), and as many of them as keep all cores busy.
//
//   before: (f32[32], s32[32]) reduce(f32[32,50257], iota), dimensions={1}
//   after:  (f32[32], s32[32]) reduce(concatenate(f32[32,392] reduce(f32[32,392,128] of all but the last 81),
//                                                f32[32,1] reduce(f32[32,128] of the last 128)), ...), dimensions={1}
//
// Where groups do not fit, the last one begins early: an element that is given twice is chosen as if it were given
// once, for reducers that are sure to (selecting_reducer.h). Groups depend on shapes alone.
// Nothing on GPU class, whose kernels take rows of any length (codegen/ordered_reduction_emitter.cc).
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class SplitSelections : public Pass {
 public:
  std::string_view name() const override { return "split-selections"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
