// A product whose result is much larger than its operands and is soon contracted again, with all that happens in
// between: attention's scores, softmax and sums of values; its gradient.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "hlo/computation.h"

namespace hlorun::passes {

struct ProductGroup {
  hlo::Instruction* seed;  // the product
  std::vector<hlo::Instruction*>
      members;  // operands before users; `seed`, what is as large as it, and what lies between
  std::vector<hlo::Instruction*> results;   // members that others use, all small
  std::vector<hlo::Instruction*> operands;  // what members use of others

  bool Has(const hlo::Instruction* instruction) const { return members_set.contains(instruction); }
  std::unordered_set<const hlo::Instruction*> members_set;
};

// The groups of `seed` that can each be computed at once, in order; a group's large members that an earlier group has
// too are computed anew. One group where nothing comes in between; two where something that depends on the first's
// results goes into the second (a gradient). Empty where a large member is wanted outside, or cannot be cut.
std::vector<ProductGroup> ProductGroupsOf(hlo::Instruction* seed);

// Dimensions of the group's values that are one loop: `dimension_of` says which of a value's dimensions, for members
// and operands that have it; no member needs more of an operand than its own part.
struct TileLoop {
  int64_t size;
  std::unordered_map<const hlo::Instruction*, int64_t> dimension_of;
};
// Those loops that all results have, in the order of the seed's dimensions.
std::vector<TileLoop> TileLoopsOf(const ProductGroup& group);

}  // namespace hlorun::passes
