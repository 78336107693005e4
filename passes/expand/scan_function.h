// The function that a scan combines elements with, as a computation of its own.
#pragma once

#include <vector>

#include "hlo/builder.h"
#include "passes/expand/slice_scan.h"

namespace hlorun::passes {

// The function's results of `left` and `right`, one value an array each, of any dimensions.
std::vector<hlo::Instruction*> Combined(const SliceScan& scan, const std::vector<hlo::Instruction*>& left,
                                        const std::vector<hlo::Instruction*>& right, hlo::Builder& build);

// The opcode where there is one array and the function is one op that reductions know, of both arguments.
std::optional<hlo::Opcode> ScanOpcode(const SliceScan& scan);

// Whether the function has ops that take many times as long as an addition.
bool IsExpensive(const SliceScan& scan);

// Whether it makes floats of less than 32 bits by conversions: a cumulative op would round so at each element, which
// the recursion does some twenty times. (Ops on such floats themselves are widened, expand/wide_reductions.h.)
bool RoundsAtEachStep(const SliceScan& scan);

// Whether f(f(a, b), c) is f(a, f(b, c)), as far as some hundred samples tell, computed in f64: small numbers and large
// ones, and multiples of the function's own constants. No proof: HLO does not say that a function is associative, and
// who writes such a recursion does so because it is. Samples where either is not finite say nothing; too many of
// those, and the answer is no.
bool SeemsAssociative(const SliceScan& scan);

}  // namespace hlorun::passes
