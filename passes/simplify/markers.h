// Removes what carries no computation: opt-barrier, domain, and the custom-calls that only name a sharding or a
// place (Sharding, SPMDFullToShardShape, xla.sdy.*, annotate_device_placement ...), for a program that runs as it
// stands. Control edges go too, but for those between effects: XLA leaves them in optimised modules to order reads and
// writes of the buffers that it had assigned, and a rewrite that merges their ends would close a cycle. Ours are
// assigned later.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class RemoveMarkers : public Pass {
 public:
  std::string_view name() const override { return "remove-markers"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
