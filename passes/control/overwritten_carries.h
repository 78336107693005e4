// A carried array that a loop overwrites, all of it, before anything reads it starts as memory as it is found: the
// zeros that a scan's stacked results begin as are never stored.
//
//   before: zeros = f32[7,64,512] broadcast(zero)
//           while((i, zeros)), body={ ... next = dynamic-update-slice(ys, y, i, zero, zero) ... }     7 trips
//   after:  ys = f32[7,64,512] custom-call(), custom_call_target="hlorun.uninitialized"
//           while((i, ys)), body={ ... }
//
// Of a parameter, which has to be copied, what lies between the places that the loop overwrites is:
//
//   before: while((i, x)), body={ ... next = dynamic-update-slice(carried, row, 4 * i, zero) ... }      1,000 trips
//   after:  u = f32[1024,4,1024] custom-call(), custom_call_target="hlorun.uninitialized"
//           v = dynamic-update-slice(u, slice(x'), 0, 1, 0)     x' = f32[1024,4,1024] reshape(x), of which rows 1 to 3
//           w = dynamic-update-slice(v, slice(x'), 1000, 0, 0)     and row 0 of the last 24
//           while((i, reshape(w))), body={ ... }
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
