// rng-get-and-update-state: the run's 128-bit state becomes a value, u64[2] with the high word first, that goes from
// each use to the next, around loops and through branches. A run starts where XLA:CPU starts, so equal runs draw equal
// numbers.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class ThreadRngState : public Pass {
 public:
  std::string_view name() const override { return "thread-rng-state"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
