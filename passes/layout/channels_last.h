// Moves images with channels first, [N,C,H,W], to the order in which convolutions have them, [N,H,W,C], where that
// spares transposes: what lies between two convolutions (norms, activations, sums, pooling, concatenations, pixels
// that an index picks) then works on their order, and the transposes around it cancel.
//
//   before: t = transpose(convolution), u = maximum(t, 0), convolution(transpose(u))
//   after:  v = maximum(convolution, 0), convolution(v)
//
// Ops that keep the order of dimensions, connected through their operands, change together: where the transposes that
// come in and go out take fewer bytes afterwards. Reductions and products that read such an array read the other order
// for nothing. Runs between CanonicalizeConvolutions and CanonicalizeDots.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class ChannelsLast : public Pass {
 public:
  std::string_view name() const override { return "channels-last"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
