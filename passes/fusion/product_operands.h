// Joins what makes an operand of a product with the product, where its kernels read each element of it about once: they
// compute it where they would load it, and it is never in memory.
//
//   before: w = f32[2048,512] fusion(q, s) { multiply(convert(q), broadcast(s)) }    d = f32[1,512] dot(x, w)
//   after:  d = f32[1,512] fusion(x, q, s), kind=kOutput { dot(x, multiply(convert(q), broadcast(s))) }
//
// Weights that are kept as narrow numbers, or as a slice of those of all layers, are so read as they lie. Expects
// kernels (fusion.h), and extents attached: a product whose work ends at sizes stays as it is.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class FuseOperands : public Pass {
 public:
  std::string_view name() const override { return "fuse-operands"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
