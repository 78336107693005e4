// Dimension groups: dimensions of all of a program's values that are the same loop.
//
// The batch dimension of an input, of every activation and of the loss's terms is one group; so is a layer's hidden
// dimension in its two weight matrices and in what lies between them. To cut a group along a mesh axis is the unit in
// which automatic sharding thinks.
#pragma once

#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hlo/module.h"

namespace hlorun::passes::spmd {

struct DimensionGroup {
  int64_t smallest = 0;          // size of its smallest dimension
  int64_t common = 0;            // greatest number that divides all of them
  double work = 0;               // seconds, on a nominal device, of the ops that loop over it
  double activation_work = 0;    // of products with a weight: as a dimension of the other operand alone
  double feature_work = 0;       //                            as a dimension of the weight
  bool leaves_weight = false;    // is a dimension of a weight and of its product's result ...
  bool enters_weight = false;    // ... or of a weight and of what it is multiplied with
  std::set<int64_t> weights;     // leaves of the entry's parameters: weights that have it
  std::set<int64_t> parameters;  // any
};

class DimensionGroups {
 public:
  // The module must be inlined, as PropagateShardings finds it; it must not change while the groups live.
  explicit DimensionGroups(const hlo::Module& module);

  const std::vector<DimensionGroup>& groups() const { return groups_; }
  // The group of a dimension of an instruction's leaf; -1 for a dimension that no one may cut (of size 1, or dynamic)
  // and for values that the entry does not execute.
  int GroupOf(const hlo::Instruction& instruction, int64_t leaf, int64_t dimension) const;
  // The group that most of the products' work has as an activation dimension: the batch. -1 where there is none.
  int data_group() const { return data_group_; }

 private:
  friend class GroupBuilder;
  std::vector<DimensionGroup> groups_;
  std::unordered_map<const hlo::Instruction*, std::vector<std::vector<int>>> group_of_;  // by leaf, by dimension
  int data_group_ = -1;
};

}  // namespace hlorun::passes::spmd
