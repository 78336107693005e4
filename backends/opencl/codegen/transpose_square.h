// Squares of a matrix transposed in vector registers.
#pragma once

#include <functional>
#include <vector>

#include "backends/opencl/codegen/kernel_ir.h"

namespace hlorun::opencl {

// How rows are read: elements first .. first + count of row i of the square.
using SquareReader = std::function<ir::Expr(int64_t row, int64_t first, int64_t count)>;

// write(i, column i) of a square of `vector.lanes` rows, at least two. Rows whose elements are converted are best read
// as `whole_rows`; else by pieces of 128 bits, which lie where they belong as soon as they are loaded, so that half the
// shuffles are left, of the cheapest kind (4 rows of f32 at a time: 0.17 ns an element instead of 0.60).
ir::Stmt TransposeSquare(ir::Type vector, bool whole_rows, const SquareReader& read,
                         const std::function<ir::Stmt(int64_t, const ir::Expr&)>& write);

// Functions that the statement calls. `inline_assembly`: DeviceSpec::has_inline_assembly.
std::vector<ir::Helper> TransposeHelpers(ir::Type vector, bool whole_rows, bool inline_assembly);

}  // namespace hlorun::opencl
