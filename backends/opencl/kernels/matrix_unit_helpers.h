// Functions of the matrix unit (codegen/matrix_unit.h) as helpers of a kernel.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "backends/opencl/codegen/kernel_ir.h"

namespace hlorun::opencl {

// Those of these names, in the order in which they are defined.
std::vector<ir::Helper> UnitHelpers(std::initializer_list<std::string_view> names);

ir::Stmt CallUnit(const char* function, std::vector<ir::Expr> arguments = {});

// 16 rows of 16 numbers of 32 bits, `pitch` apart from `first` on.
struct Square {
  ir::BufferRef buffer;
  ir::Expr first;
  int64_t pitch = 16;
};
// The columns of `from` become the rows of `to`. Calls TurnHelpers of the type of `from`.
ir::Stmt TurnSquare(const Square& from, const Square& to);
std::vector<ir::Helper> TurnHelpers(hlo::ElementType type, bool inline_assembly);

// Sums of parts of bf16 (matrix_unit_plan.h) at `sums` that are NaN are replaced by those of the first parts alone,
// which `sum_first_parts` leaves in the tiles; by way of `first_sums`. Both are addresses of blocks. An infinite
// number's other parts are NaN, and what it meets may have parts that are zero: its sums are never anything else.
ir::Stmt MendSums(const ir::Expr& sums, const ir::Expr& first_sums, const ir::Stmt& sum_first_parts);

}  // namespace hlorun::opencl
