// Collectives that take long run while the device computes what does not need them: each becomes a start, as early as
// its operands are there, and a done, as late as the rest of the program allows.
//   before: a = f32[n] all-reduce(x);  b = use(a);  y = dot(...)
//   after:  s = ((f32[n]), f32[n]) async-start(x), calls=all-reduce;  y = dot(...);  a = async-done(s);  b = use(a)
// Starts keep the collectives' order, so that all ranks communicate in the same one. The order of everything else is
// that of a simulation with the kernels' and the link's estimated times (control/time_model.h, link.h). Operands stay
// alive until the done: an order that would take noticeably more memory than the schedule is given up. Needs a
// scheduled module.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class OverlapCollectives : public Pass {
 public:
  std::string_view name() const override { return "overlap-collectives"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
