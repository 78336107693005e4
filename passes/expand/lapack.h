// The LAPACK custom-calls that JAX emits when it exports for CPU become the opcodes of XLA: lapack_?potrf_ffi is
// cholesky, lapack_?trsm_ffi triangular-solve.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class ExpandLapack : public Pass {
 public:
  std::string_view name() const override { return "expand-lapack"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
