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

// Whether f(f(a, b), c) is f(a, f(b, c)) up to rounding, as far as some hundred samples of small numbers tell. Samples
// where either is not finite say nothing; too many of those, and the answer is no.
bool SeemsAssociative(const SliceScan& scan);

}  // namespace hlorun::passes
