#include "backends/opencl/codegen/reduced_shape.h"

#include <algorithm>

namespace hlorun::opencl {

hlo::Dims ReducedShape::Of(const std::vector<size_t>& numbers) const {
  hlo::Dims d;
  for (const size_t n : numbers) d.push_back(dimensions[n]);
  return d;
}

bool ReducedShape::IsRows() const {
  const auto last = [&](const std::vector<size_t>& numbers) {
    int64_t found = -1;
    for (const size_t n : numbers) found = dimensions[n] > 1 ? static_cast<int64_t>(n) : found;
    return found;
  };
  return last(reduced) > last(kept);
}

ReducedShape ReducedShapeOf(const hlo::Instruction& reduce) {
  ReducedShape shape{reduce.operand(0)->shape().dimensions(), {}, {}};
  for (size_t d = 0; d < shape.dimensions.size(); ++d) {
    const bool is_reduced = std::find(reduce.dimensions().begin(), reduce.dimensions().end(),
                                      static_cast<int64_t>(d)) != reduce.dimensions().end();
    (is_reduced ? shape.reduced : shape.kept).push_back(d);
  }
  return shape;
}

}  // namespace hlorun::opencl
