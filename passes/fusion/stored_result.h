// Where the kernel of a product puts what it makes: at its places, or, where the fusion's root only rearranges the
// result, where that says.
//
//   product f32[1568,512]  ->  transpose f32[8,8,196,64] (reshape f32[8,196,8,64] (value)), dimensions {0,2,1,3}
//
// A network's heads are brought together so, in front of its attention, and apart behind it. Or the root reduces groups
// of neighbouring rows, and one row of each is all that is stored (expand/reduce_in_products.h makes them):
//
//   product f32[4096,4096]  ->  reduce-window f32[128,4096] (value), window={size=32x1 stride=32x1}
//
// Or it is a part of a larger array, at a place that is known: of a concatenation (expand/parts_in_place.h).
//
//   product f32[64,32]  ->  dynamic-update-slice f32[64,96] (array, value, 0, 32)
#pragma once

#include <cstdint>
#include <vector>

#include "hlo/instruction.h"

namespace hlorun::passes {

// Elements at least, and a divisor of those, that stay together.
inline constexpr int64_t kStoredRun = 16;

struct StoredResult {
  const hlo::Instruction* value;  // of the product's dimensions; of several that are reduced together, the first
  // From the root, a transpose, down to the last reshape before `value`, or the reduce-window, or the update; empty
  // where the root is the value.
  std::vector<const hlo::Instruction*> way;

  bool IsOnTheWay(const hlo::Instruction* instruction) const;
};

// `root` may be in a fused computation or not.
StoredResult StoredResultOf(const hlo::Instruction& root);

// How many rows each window of `op` is: of a reduce-window along the second last dimension, one window after another,
// of which only the last may be shorter. 0: it is no such.
int64_t RowsOfGroup(const hlo::Instruction& op);

}  // namespace hlorun::passes
