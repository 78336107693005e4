// How a sized value crosses the border of a computation: as a tuple of its elements and, behind them, its sizes.
#pragma once

#include <vector>

#include "hlo/builder.h"
#include "passes/dynamic/sized_value.h"

namespace hlorun::passes {

// The value as one instruction; tuples are made where they are needed.
hlo::Instruction* AsInstruction(hlo::Builder& build, SizedValue& value);
// An instruction without sizes; elements of tuples are taken out.
SizedValue FromInstruction(hlo::Builder& build, hlo::Instruction* instruction);
// The arrays (and tokens) of a value in flattened order.
std::vector<SizedValue*> LeavesOf(SizedValue& value);

class Carrier {
 public:
  // Of static shape `shape`; no dimension has a size yet.
  explicit Carrier(hlo::Shape shape);
  // Dimensions that have a size in `value` get one here. Returns whether there were new ones.
  bool Include(SizedValue& value);

  hlo::Shape PackedShape() const;
  // Sizes that `value` lacks are its bounds.
  hlo::Instruction* Pack(hlo::Builder& build, SizedValue& value) const;
  SizedValue Unpack(hlo::Builder& build, hlo::Instruction* packed) const;

 private:
  int64_t size_count() const;

  hlo::Shape shape_;
  std::vector<std::vector<bool>> sized_;  // by leaf and dimension
};

}  // namespace hlorun::passes
