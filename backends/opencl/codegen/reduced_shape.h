// The dimensions of what a reduce walks, by whether they stay.
#pragma once

#include <vector>

#include "hlo/instruction.h"

namespace hlorun::opencl {

struct ReducedShape {
  hlo::Dims dimensions;               // of the operands
  std::vector<size_t> kept, reduced;  // numbers
  hlo::Dims Of(const std::vector<size_t>& numbers) const;
  int64_t results() const { return hlo::CheckedProduct(Of(kept)); }
  int64_t elements() const { return hlo::CheckedProduct(Of(reduced)); }  // of each result
  // Whether a result's elements lie side by side: the last dimension that is not 1 is reduced.
  bool IsRows() const;
  // An operand's index, by the kept and the reduced dimensions'.
  template <typename Indices>
  Indices Place(const Indices& at_kept, const Indices& at_reduced) const {
    Indices place(dimensions.size());
    for (size_t i = 0; i < kept.size(); ++i) place[kept[i]] = at_kept[i];
    for (size_t i = 0; i < reduced.size(); ++i) place[reduced[i]] = at_reduced[i];
    return place;
  }
};

ReducedShape ReducedShapeOf(const hlo::Instruction& reduce);

}  // namespace hlorun::opencl
