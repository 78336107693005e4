#include "backends/opencl/kernels/product_result.h"

#include "backends/opencl/kernels/index_math.h"

namespace hlorun::opencl {

using ir::Expr;
using ir::Op;

bool StoresTurned(const ProductShape& shape) { return shape.swapped && shape.m > 1; }

RunIndex ResultIndex(const ProductTask& task, const ProductShape& shape, const Expr& batch, const Expr& row,
                     const Expr& column) {
  RunIndex at;
  if (task.hero.Is(hlo::Opcode::kConvolution)) {
    // Rows of the product are the pixels of all images.
    const hlo::Shape& result = task.hero.shape();
    Expr rest = row;
    for (int64_t d = result.rank() - 2; d > 0; --d) {
      at.index.insert(at.index.begin(), ir::Binary(Op::kFloorMod, rest, Index(result.dimension(d))));
      rest = ir::Binary(Op::kFloorDiv, rest, Index(result.dimension(d)));
    }
    at.index.insert(at.index.begin(), rest);
    at.index.push_back(column);
    at.lane_dimension = at.index.size() - 1;
    return at;
  }
  if (task.hero.shape().rank() == 3) at.index.push_back(batch);
  at.lane_dimension = at.index.size() + (shape.swapped && !StoresTurned(shape) ? 0 : 1);
  at.index.push_back(shape.swapped ? column : row);
  at.index.push_back(shape.swapped ? row : column);
  return at;
}

}  // namespace hlorun::opencl
