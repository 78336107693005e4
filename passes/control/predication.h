// Control flow whose kernels read the predicate on the device and return at once where it is false: the host enqueues
// all of them and decides nothing.
//
//   before: r = conditional(p, x, y), branch_computations={t, f}
//   after:  r = conditional(p, x, y), branch_computations={t, f}, backend_config={"predicated":{}}
//   before: w = while(t), condition=c, body=b
//   after:  w = while(t), condition=c, body=b, backend_config={"predicated":{"ahead":"4"}}
//
// A conditional is predicated when its branches are kernels only and launching those that return at once costs less
// than the host's wait (or --branches=predicate asks). A loop of unknown length is enqueued `ahead` iterations at a
// time while the predicate of an earlier one is on its way to the host; one that is known to end soon enough is
// enqueued to that end ("at_most") and never asked. Never marks what has effects, host steps, collectives or libraries
// inside, nor a branch that holds a loop the host must ask about. Runs last before memory: live ranges keep a predicate
// as long as kernels read it.
#pragma once

#include <optional>

#include "passes/pass.h"

namespace hlorun::passes {

class PredicateControl : public Pass {
 public:
  std::string_view name() const override { return "predicate-control"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

bool IsPredicated(const hlo::Instruction& conditional);

struct LoopPredication {
  int64_t ahead = 0;     // iterations enqueued between two reads of the predicate; 0: it is never read
  int64_t at_most = -1;  // the loop has ended after so many; -1: unknown
};
std::optional<LoopPredication> PredicationOf(const hlo::Instruction& loop);

// Why the kernels of `computation` cannot all read a predicate; empty when they can.
std::string WhyNotPredicated(const hlo::Computation& computation, const KernelModel& kernels);

}  // namespace hlorun::passes
