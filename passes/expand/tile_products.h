// Products whose results take much of the memory, and what is done to them until they are contracted again, become a
// loop over tiles: attention without the matrix of its scores.
//
//   before: s = f32[8,4096,4096] dot(q, k), ... softmax ..., o = f32[8,4096,64] dot(p, v)
//   after:  o = while (tile < 64) { s = f32[1,512,4096] dot(q's tile, k's), ..., o's tile = dot(p, v's) }
//
// Each sum is over the same elements as before. A gradient's products become a loop of their own, which computes the
// scores once more, where keeping them would take a quarter of the memory (of --memory_limit, or the device's).
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class TileProducts : public Pass {
 public:
  std::string_view name() const override { return "tile-products"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
