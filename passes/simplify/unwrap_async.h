// Start, update and done instructions become the plain op at the place of the start: async-start of a computation that
// wraps one op, copy-start, all-reduce-start, all-gather-start, collective-permute-start.
//
// The runtime schedules from dependencies, so nothing is lost; every later pass sees each op in one form only.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class UnwrapAsync : public Pass {
 public:
  std::string_view name() const override { return "unwrap-async"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
