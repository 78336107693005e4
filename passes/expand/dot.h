// Brings every dot to the form that kernels take (dot_form.h).
//
//   before: f32[8,197,12,64] dot f32[8,197,12,64], batch {0,2}, contracting {3}
//   after:  each side transposed to [8,12,197,64], reshaped to [96,197,64]; dot; reshaped to [8,12,197,197]
//
// Dimensions of one role are merged into one by a reshape where they lie together, else a transpose puts them together;
// unit dimensions never cause one. A transpose that feeds a dot, or a result that is only transposed so that the
// columns come first, is absorbed where the form allows it. A few rows against a batch of large matrices that would have
// to be transposed are no dot at all, but a sum of products where the matrices lie. On CPU class many rows by two to four
// columns are exchanged.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class CanonicalizeDots : public Pass {
 public:
  std::string_view name() const override { return "canonicalize-dots"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
