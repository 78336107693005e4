#include "hlo/iota_order.h"

#include "hlo/shape.h"

namespace hlorun::hlo {

std::vector<int64_t> TransposedIota(std::span<const int64_t> reshape_dims, std::span<const int64_t> permutation) {
  const int64_t count = CheckedProduct(reshape_dims);
  std::vector<int64_t> order;
  order.reserve(static_cast<size_t>(count));
  if (permutation.empty()) {
    for (int64_t i = 0; i < count; ++i) order.push_back(i);
    return order;
  }
  const Dims strides = Shape(ElementType::kS32, Dims(reshape_dims.begin(), reshape_dims.end())).Strides();
  Dims dims, dim_strides;
  for (int64_t p : permutation) {
    dims.push_back(reshape_dims[static_cast<size_t>(p)]);
    dim_strides.push_back(strides[static_cast<size_t>(p)]);
  }
  Dims index(dims.size(), 0);
  if (count == 0) return order;
  do {
    int64_t value = 0;
    for (size_t d = 0; d < dims.size(); ++d) value += index[d] * dim_strides[d];
    order.push_back(value);
  } while (NextIndex(index, dims));
  return order;
}

}  // namespace hlorun::hlo
