#include "backends/opencl/codegen/extent_expr.h"

#include <algorithm>

namespace hlorun::opencl {

ir::Expr ExtentExpr(const ir::Expr& size, const passes::OperandExtent& extent, int64_t bound) {
  const ir::Type type = size->type;
  ir::Expr value = ir::Max(size, ir::Int(0, type));
  value = ir::Min(value, ir::Int(std::max<int64_t>(bound, 1) * extent.div, type));  // so that nothing overflows
  if (extent.mul != 1) value = value * extent.mul;
  if (extent.div != 1) value = ir::Binary(ir::Op::kFloorDiv, value + (extent.div - 1), ir::Int(extent.div, type));
  if (extent.add != 0) value = ir::Max(value + extent.add, ir::Int(0, type));
  return ir::Min(value, ir::Int(bound, type));
}

}  // namespace hlorun::opencl
