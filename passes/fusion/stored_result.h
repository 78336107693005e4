// Where the kernel of a product puts what it makes: at its places, or, where the fusion's root only rearranges the
// result, where that says.
//
//   product f32[1568,512]  ->  transpose f32[8,8,196,64] (reshape f32[8,196,8,64] (value)), dimensions {0,2,1,3}
//
// A network's heads are brought together so, in front of its attention, and apart behind it.
#pragma once

#include <vector>

#include "hlo/instruction.h"

namespace hlorun::passes {

// Elements at least, and a divisor of those, that stay together.
inline constexpr int64_t kStoredRun = 16;

struct StoredResult {
  const hlo::Instruction* value;  // of the product's dimensions
  // From the root, a transpose, down to the last reshape before `value`; empty where the root is the value.
  std::vector<const hlo::Instruction*> way;

  bool IsOnTheWay(const hlo::Instruction* instruction) const;
};

// `root` may be in a fused computation or not.
StoredResult StoredResultOf(const hlo::Instruction& root);

}  // namespace hlorun::passes
