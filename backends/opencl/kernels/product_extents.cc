#include "backends/opencl/kernels/product_extents.h"

#include <algorithm>

namespace hlorun::opencl {

ProductSizes ProductSizesOf(const ProductTask& task, const ProductShape& shape) {
  ProductSizes sizes{{shape.batch}, {shape.m}, {shape.n}, {shape.k}};
  const passes::KernelExtents extents = passes::ExtentsOf(task.instruction);
  const hlo::Shape& result = task.hero.shape();
  if (task.hero.Is(hlo::Opcode::kConvolution)) {
    // Rows are pixels: cut where all but the slowest dimension are whole.
    int64_t slowest = 0;
    while (slowest + 2 < result.rank() && result.dimension(slowest) == 1) ++slowest;
    sizes.m.extent = extents.Of(0, slowest);
    sizes.m.scale = shape.m / std::max<int64_t>(1, result.dimension(slowest));
    return sizes;
  }
  sizes.k.extent = extents.contraction;
  // Of a result that is put elsewhere, extents are of dimensions that the product has not.
  if (!task.instruction.shape().SameDimensions(result)) return sizes;
  const int64_t first = result.rank() == 3 ? 1 : 0;
  if (first == 1) sizes.batch.extent = extents.Of(0, 0);
  sizes.m.extent = extents.Of(0, first + (shape.swapped ? 1 : 0));
  sizes.n.extent = extents.Of(0, first + (shape.swapped ? 0 : 1));
  return sizes;
}

}  // namespace hlorun::opencl
