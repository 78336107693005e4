// From a module's annotations to a sharding of every value.
//
// Annotated dimensions stay as they are, unless they are open. Axes then spread along factor rules, forwards and
// backwards, in this order, each level to a fixpoint together with those before it:
//   user priorities (Shardy's p0, p1, ...), and within each
//   1. elementwise ops, transposes, reshapes, copies, and control flow (a loop's carried values, branches' operands);
//   2. broadcasts, reductions, slices, pads, concatenations, windows, updates, gathers, scatters, sorts;
//   3. products and convolutions.
// Where tensors of one op disagree, an axis list wins over its own prefixes; otherwise the common prefix is all that
// spreads in level 1, the largest tensor's list in levels 2 and 3. An axis that two loops of an op want goes to a
// parallel loop before a reduced one. A dimension is cut only where no part would be all padding.
#pragma once

#include <unordered_map>

#include "passes/spmd/annotations.h"

namespace hlorun::passes::spmd {

// One sharding a leaf of the instruction's shape.
using ShardingTable = std::unordered_map<const hlo::Instruction*, std::vector<MeshSharding>>;

struct PropagationResult {
  ShardingTable shardings;            // of every instruction that the entry executes
  std::vector<MeshSharding> outputs;  // as the entry's root is wanted, one a leaf
};

PropagationResult Propagate(const hlo::Module& module, const ModuleAnnotations& annotations);

}  // namespace hlorun::passes::spmd
