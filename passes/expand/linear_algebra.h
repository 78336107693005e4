// cholesky becomes a loop over columns, triangular-solve one over rows; each trip is a matrix-vector product.
//
// Batches of matrices run in one loop. Of an operand, only the triangle that the op reads is read.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class ExpandCholesky : public Pass {
 public:
  std::string_view name() const override { return "expand-cholesky"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

class ExpandTriangularSolve : public Pass {
 public:
  std::string_view name() const override { return "expand-triangular-solve"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
