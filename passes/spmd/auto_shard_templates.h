// The ways of cutting a program that automatic sharding considers, as lists of dimension groups and mesh axes.
//
//   replicated          every device computes everything
//   data-parallel       the batch is cut; weights are whole, their gradients all-reduced
//   tensor-parallel     a dimension of each weight is cut, alternately the one that leaves and the one that enters it
//   sequence-parallel   another activation dimension is cut: positions, rows of an image
//   fully sharded       the batch is cut, and every weight is kept in parts and gathered where it is used
//   one dimension       any other group with much work
// and on a mesh of two axes, a batch cut by the first with each of tensor- and sequence-parallel, or fully sharded, by
// the second.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "passes/spmd/auto_shard_groups.h"

namespace hlorun::passes::spmd {

struct ShardingPlan {
  std::string name;                       // "data-parallel x tensor-parallel"
  std::vector<int64_t> mesh;              // sizes of its axes, major first; empty: replicated
  std::vector<std::pair<int, int>> cuts;  // group, axis
  int weight_axis = -1;                   // cuts every parameter that it does not cut already; -1: none
};

// For `devices` devices. The same for the same module, whatever the device; "replicated" comes first.
std::vector<ShardingPlan> ShardingPlans(const DimensionGroups& groups, int64_t devices);

// A copy of `module` (whose groups these are) with the plan as shardings of the entry's parameters, of results that
// alias them and, where weights are gathered or a group has no parameter, of products. num_partitions is the mesh's
// size.
std::unique_ptr<hlo::Module> Annotate(const hlo::Module& module, const DimensionGroups& groups,
                                      const ShardingPlan& plan);

}  // namespace hlorun::passes::spmd
