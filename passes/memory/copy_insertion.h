// Inserts copies so that every value that flows into a slot can lie in that slot.
//
//   before: body { p = (s32[], s32[]) parameter(0) ... ROOT t = tuple(p.1, p.0) }     slots 0 and 1 are exchanged
//   after:  body { ... c = copy(p.1)  d = copy(p.0)  e = copy(c)  ROOT t = tuple(e, d) }
//
// A slot is a leaf that a loop carries, a result of a conditional, a result leaf of the entry or an argument leaf
// aliased with one. Copies are needed where such a value is still read after the slot has been written, where a
// constant or an argument enters a slot that is written, and where two slots get one value. Small ones that a region
// computes are handed over instead where that will do (hand_over.h). Needs a scheduled module
// whose control computations have one caller each (FlattenControl); afterwards AssignBuffers finds a slice for
// everything.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class CopyInsertion : public Pass {
 public:
  std::string_view name() const override { return "copy-insertion"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
