// Where an element of a product, in the plan's roles, lies in the result.
#pragma once

#include "backends/opencl/kernels/epilogue.h"
#include "backends/opencl/kernels/multiply.h"

namespace hlorun::opencl {

// Whether runs of the result go along rows of the plan's roles.
bool StoresTurned(const ProductShape& shape);

// [batch, row, column] of the plan's roles as an index of the hero's result; a run goes along columns, or rows where
// StoresTurned.
RunIndex ResultIndex(const ProductTask& task, const ProductShape& shape, const ir::Expr& batch, const ir::Expr& row,
                     const ir::Expr& column);

}  // namespace hlorun::opencl
