// Cumulative ops of several arrays take in those that hold one number everywhere or are converted from narrower types,
// and write the results that are read. Small ones keep all results: a region's values do not run on in variables.
//
//   before: s = (pred[n], f32[n], f32[n]) reduce-window(broadcast(true), a, b, ...)
//           r = f32[n] get-tuple-element(s), index=2
//   after:  r = f32[n] fusion(a, b), calls={ p, q  s = reduce-window(broadcast(true), p, q, ...)
//                                            ROOT r = get-tuple-element(s), index=2 }
#pragma once

#include "hlo/computation.h"

namespace hlorun::passes {

// Dead instructions are gone before.
bool FuseCumulativeOps(hlo::Computation& computation);

// Whether `root`, of a fusion, is `op`, a result of it or a tuple of such.
bool GivesResultsOf(const hlo::Instruction& root, const hlo::Instruction& op);

// Whether it is all results, in their order.
bool GivesAllResultsOf(const hlo::Instruction& root, const hlo::Instruction& op);

}  // namespace hlorun::passes
