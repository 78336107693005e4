// Small collectives of the same kind, groups, dimension and reducer that do not depend on each other become one: on a
// network each message costs its latency, however short it is.
//   before: a = f32[64] all-reduce(x);  b = f32[8,196] all-reduce(y)
//   after:  t = (f32[64], f32[8,196]) all-reduce(x, y);  a = get-tuple-element(t), index=0;  b = ...
// All-reduces, all-gathers and reduce-scatters; an all-to-all of several arrays has no form in HLO. Never combines what
// another collective must come between, nor arrays that take longer to send than to start sending (link.h).
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class CombineCollectives : public Pass {
 public:
  std::string_view name() const override { return "combine-collectives"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
