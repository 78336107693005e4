// The passes that turn an annotated module into one device's program.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

// Gives every instruction a sharding, from those that the user wrote (see spmd/propagation.h for the order).
//   before: y = dot(x, w)                                 with x {devices=[4,1]<=[4]}
//   after:  y = dot(x, w), sharding={devices=[4,1]<=[4]}
class PropagateShardings : public Pass {
 public:
  std::string_view name() const override { return "spmd-propagate"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

// One module for all devices becomes one for each: shapes are those of a device's part, and collectives move what other
// devices have. Never touches a module that already is one device's (explicit collectives outside of manual
// computations), nor one without annotations.
//   before: x = f32[8,4] parameter(0), sharding={devices=[2,1]<=[2]};  r = f32[] reduce(x, zero), dimensions={0,1}
//   after:  x = f32[4,4] parameter(0);  p = f32[] reduce(x, zero);  r = f32[] all-reduce(p), replica_groups={{0,1}}
class PartitionModule : public Pass {
 public:
  std::string_view name() const override { return "spmd-partition"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

namespace spmd {
// Module::frontend_attributes of a partitioned module: how its results lie, as text. The root says so too, but passes replace
// roots.
inline constexpr const char* kResultSharding = "hlorun.result_sharding";

// Whether PartitionModule would change the module: annotated, for several partitions, and not partitioned yet.
bool NeedsPartitioning(const hlo::Module& module, const CompileOptions& options);
// --num_partitions, else what the module says.
int64_t PartitionsFor(const hlo::Module& module, const CompileOptions& options);
}  // namespace spmd

}  // namespace hlorun::passes
