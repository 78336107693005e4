// Vector loops cut where a comparison of their variable with a number changes its answer:
//
//   before: for i in [0, 512): y[i] = x[i] + (i < 1 ? x[i + 511] : x[i - 1])        (x rolled by one, added to x)
//   after:  for i in [0, 1):   y[i] = x[i] + x[i + 511]
//           for i in [1, 512): y[i] = x[i] + x[i - 1]
//
// Pieces of a concatenation, padding, and what is shifted are read by whole vectors then, without masks.
#pragma once

#include <vector>

#include "backends/opencl/codegen/kernel_ir.h"

namespace hlorun::opencl {

// `loop`, a kFor with role kVector, as loops of the same role whose ranges follow one another; more than one only where
// it begins and ends at numbers and few comparisons would make few pieces. Between two cuts a piece is whole vectors
// that begin at a multiple of the loop's width, as far as there are any.
std::vector<ir::Stmt> PiecesOf(const ir::Stmt& loop);

}  // namespace hlorun::opencl
