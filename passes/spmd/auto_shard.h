// Automatic sharding: shardings for a module that has none.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "passes/pass.h"
#include "passes/spmd/auto_shard_templates.h"

namespace hlorun::passes {

// Whether AutoSharder may cut the module: written for one device, without annotations or collectives, of known sizes,
// and without exchanging values with the host as it runs.
bool CanShardAutomatically(const hlo::Module& module);

// Partitions the module by every plan of auto_shard_templates.h and keeps the one that costs least, by the device's
// cost table, of those that fit into --memory_limit.
//
// Which plans there are depends on the module and the number of devices alone: one rank chooses, and tells the others
// the plan's index.
class AutoSharder {
 public:
  // Throws Error kUnimplemented for a module that CanShardAutomatically refuses.
  AutoSharder(const hlo::Module& module, int64_t devices);

  const std::vector<spmd::ShardingPlan>& plans() const { return plans_; }
  // The index of the best plan. Appends a remark that says which and why. Throws Error kResourceExhausted when none
  // fits into the memory limit.
  size_t Choose(PassContext& context) const;
  // The module with the plan's shardings: ready to compile, to print, and to be edited by hand. For "replicated" it is
  // a plain copy.
  std::unique_ptr<hlo::Module> Annotated(size_t plan) const;

 private:
  int64_t devices_;
  std::unique_ptr<hlo::Module> module_;  // inlined, as shardings propagate through it
  std::unique_ptr<spmd::DimensionGroups> groups_;
  std::vector<spmd::ShardingPlan> plans_;
};

}  // namespace hlorun::passes
