#pragma once

#include <unordered_map>

#include "passes/pass.h"

namespace hlorun::passes {

// After it no shape is bounded: arrays have the size of their bound, and the sizes that dimensions really have are
// s32[] instructions beside them, parameters and results of the entry included (see signature.h).
//
//   before: x = f32[<=8,4] parameter(0)
//           r = f32[4] reduce(x, zero), dimensions={0}, to_apply=add
//   after:  x = f32[8,4] parameter(0)
//           n = s32[] parameter(1)
//           r = f32[4] reduce(select(iota(0) < n, x, 0), zero), dimensions={0}, to_apply=add
//
// What an array holds beyond its sizes is padding: no result depends on it, whatever it is. A module without dynamic
// dimensions is left alone. Expects calls and fusions inlined, and each computation that control flow executes called
// once.
class LowerDynamicDimensions : public Pass {
 public:
  std::string_view name() const override { return "lower-dynamic-dimensions"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

// What LowerDynamicDimensions would find: for each instruction of `module` whose shape it would give sizes, that shape
// with those dimensions dynamic. Adds computations to the module that nothing refers to.
std::unordered_map<hlo::Instruction*, hlo::Shape> FindDynamicShapes(hlo::Module& module);

}  // namespace hlorun::passes
