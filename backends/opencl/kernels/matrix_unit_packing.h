// Operands of a product as tiles of the matrix unit (matrix_unit_plan.h).
#pragma once

#include <memory>
#include <vector>

#include "backends/opencl/kernels/matrix_unit_plan.h"
#include "backends/opencl/kernels/multiply.h"

namespace hlorun::opencl {

// Columns of rhs that a work-group copies for itself (MatrixUnitPlan::slots).
class ColumnCopy {
 public:
  // Adds rhs to `parameters`; copies go to `tiles`.
  ColumnCopy(const ProductTask& task, const MatrixUnitPlan& plan, const ir::BufferRef& tiles,
             KernelParameters& parameters);
  ~ColumnCopy();

  // Both tiles of a step of a block of columns, to tiles[to] on.
  ir::Stmt Step(const ir::Expr& batch, const ir::Expr& block, const ir::Expr& step, const ir::Expr& to);
  // The private array that Step goes by; null where it needs none. And what it calls.
  ir::Stmt Declare() const;
  std::vector<ir::Helper> Helpers() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What no work-group copies for itself and no tile reads as it lies, maybe nothing: tiles of rows of lhs, 64 bytes of
// depth each; tiles of 16 columns of rhs, of which a row holds a word of each column, two bf16 or four s8 along the
// depth. In one launch; rhs in one of its own where it is kept. Operands that are computed (computed_operand.h) are
// loaded as vectors of elements, each once.
std::vector<KernelDraft> PackTilesOfUnit(const ProductTask& task, const MatrixUnitPlan& plan);

}  // namespace hlorun::opencl
