// Forms kernels: joins instructions of each executed computation into fusions (cluster.h says how), and turns what is
// left of reshapes into bitcasts, which run as nothing.
//
//   before: b = broadcast(c)  m = multiply(x, b)  r = reduce(m, zero)
//   after:  r = fusion(x, c), kind=kInput, calls={ reduce(multiply(x, broadcast(c)), 0) }
//
// Expects a simplified module of row-major layouts. Afterwards every instruction of an executed computation is one
// kernel (a library of kernels for the ops with emitters of their own), or needs none (HeroOf says which).
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class Fusion : public Pass {
 public:
  std::string_view name() const override { return "fusion"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
