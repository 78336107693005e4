// Where each device stands in its group of a collective.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hlo/instruction.h"

namespace hlorun::passes::spmd {

// Of groups of one size, larger than one, that leave no device out.
struct GroupPositions {
  int64_t group_size = 0;
  std::vector<std::vector<int64_t>> groups;
  std::vector<int64_t> of_device;

  // By device: where, in units of `unit`, the place `distance` further on in its group begins, around the end.
  hlo::Dims Ahead(int64_t distance, int64_t unit) const;
};

// Nothing for other groups, and for those whose size is not in the text.
std::optional<GroupPositions> PositionsIn(const hlo::Instruction& collective);

}  // namespace hlorun::passes::spmd
