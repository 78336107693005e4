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

// A square of 16 rows of 16 words, from square[from] on, to its columns, `pitch` words apart from out[to] on. Calls
// TurnHelpers.
ir::Stmt TurnSquare(const ir::BufferRef& square, const ir::Expr& from, const ir::BufferRef& out, const ir::Expr& to,
                    int64_t pitch);
std::vector<ir::Helper> TurnHelpers(bool inline_assembly);

// Sums of parts of bf16 (matrix_unit_plan.h) at `sums` that are NaN are replaced by those of the first parts alone,
// which `sum_first_parts` leaves in the tiles; by way of `first_sums`. Both are addresses of blocks. An infinite
// number's other parts are NaN, and what it meets may have parts that are zero: its sums are never anything else.
ir::Stmt MendSums(const ir::Expr& sums, const ir::Expr& first_sums, const ir::Stmt& sum_first_parts);

}  // namespace hlorun::opencl
