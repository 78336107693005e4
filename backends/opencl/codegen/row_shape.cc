#include "backends/opencl/codegen/row_shape.h"

namespace hlorun::opencl {

RowShape RowShapeOf(const hlo::Instruction& reduce) {
  RowShape shape{reduce.operand(0)->shape().dimensions(), {}, {}, {}};
  std::vector<bool> reduced(shape.dimensions.size(), false);
  for (const int64_t d : reduce.dimensions()) reduced[static_cast<size_t>(d)] = true;
  size_t first = shape.dimensions.size();
  while (first > 0 && (reduced[first - 1] || shape.dimensions[first - 1] == 1)) --first;
  for (size_t d = 0; d < shape.dimensions.size(); ++d) {
    (!reduced[d] ? shape.kept : d < first ? shape.outer : shape.row).push_back(d);
  }
  return shape;
}

}  // namespace hlorun::opencl
