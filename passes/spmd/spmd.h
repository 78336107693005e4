// The passes that turn an annotated module into one device's program.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

// Lowers the dynamic dimensions of a module that PartitionModule will cut (dynamic/lower.h), so that what is cut is the
// bound: the part of a device has max(0, min(size - start, part of the bound)) elements, and may be empty.
class LowerSizesToCut : public Pass {
 public:
  std::string_view name() const override { return "spmd-lower-sizes"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

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
// A module's attribute: PartitionModule made it. Its value is kAlike where all devices take all branches and loops
// alike, which manual computations need not.
inline constexpr const char* kPartitioned = "hlorun.partitioned";
inline constexpr const char* kAlike = "true";
// A module's attribute that says how PartitionModule left the result: later passes may replace the root and lose what
// it says of itself.
inline constexpr const char* kResultSharding = "hlorun.result_sharding";
// Whether PartitionModule would change the module: annotated, for several partitions, and not partitioned yet.
bool NeedsPartitioning(const hlo::Module& module, const CompileOptions& options);
// --num_partitions, else what the module says.
int64_t PartitionsFor(const hlo::Module& module, const CompileOptions& options);
}  // namespace spmd

}  // namespace hlorun::passes
