// The rows that a reduce walks.
#pragma once

#include <vector>

#include "hlo/instruction.h"

namespace hlorun::opencl {

// Reduced dimensions of an operand, and those that stay, in its order.
struct RowShape {
  hlo::Dims dimensions;       // of the operand
  std::vector<size_t> kept;   // numbers
  std::vector<size_t> outer;  // reduced, before the contiguous run at the end
  std::vector<size_t> row;    // reduced, the contiguous run at the end
  hlo::Dims Of(const std::vector<size_t>& numbers) const {
    hlo::Dims d;
    for (const size_t n : numbers) d.push_back(dimensions[n]);
    return d;
  }
  int64_t rows() const { return hlo::CheckedProduct(Of(kept)); }
  int64_t outer_count() const { return hlo::CheckedProduct(Of(outer)); }
  int64_t length() const { return hlo::CheckedProduct(Of(row)); }
};

RowShape RowShapeOf(const hlo::Instruction& reduce);

// Whether `reduce` walks the same rows.
bool ReducesRows(const hlo::Instruction& reduce, const RowShape& rows);

// Whether all that is made of `value`, of the rows' dimensions, in its fusion is made of it at its own place or of its
// own row: by elementwise ops and by reductions of these rows.
bool IsReadInItsRow(const hlo::Instruction& value, const RowShape& rows);

}  // namespace hlorun::opencl
