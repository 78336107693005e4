// Scans that are written as a recursion over slices (slice_scan.h), as jax.lax.associative_scan writes them, become one
// cumulative op, which has a kernel of running values.
//
//   before: some ten ops a level: slices by twos, an op of them, the same of half as many, pads, their sum
//   after:  s = f32[n] reduce-window(x, -inf), window={size=n pad=(n-1)_0}, to_apply=maximum
//
// A function of several arrays, or of more than one op, gets an array of truths beside them, false in the initial value
// only: not every function has a value that leaves all others as they are.
//
//   before: b = f32[n] of the scan of a1*a2, a2*b1+b2
//   after:  s = (pred[n], f32[n], f32[n]) reduce-window(true, a, b, false, 0, 0), window={size=n pad=(n-1)_0},
//           to_apply=both ? function : the one that is
//           b = get-tuple-element(s), index=2
//
// Scans of `reverse` become windows to the end. As in the recursion, the order in which sums are formed is open; zeros
// keep their sign, which the sum of pads does not. What stays: functions that samples show not to be associative;
// expensive ones (exp, log) along rows, which the recursion computes in vectors; levels that differ from those below,
// which are a scan of their own.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class SliceScans : public Pass {
 public:
  std::string_view name() const override { return "slice-scans"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
