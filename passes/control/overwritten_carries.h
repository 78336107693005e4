// A carried array that a loop overwrites, all of it, before anything reads it starts as memory as it is found: the
// zeros that a scan's stacked results begin as are never stored.
//
//   before: zeros = f32[7,64,512] broadcast(zero)
//           while((i, zeros)), body={ ... next = dynamic-update-slice(ys, y, i, zero, zero) ... }     7 trips
//   after:  ys = f32[7,64,512] custom-call(), custom_call_target="hlorun.uninitialized"
//           while((i, ys)), body={ ... }
//
// Where the number of trips is known, the places are a counter's (trip_form.h), and they leave nothing out.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class OverwrittenCarries : public Pass {
 public:
  std::string_view name() const override { return "overwritten-carries"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
