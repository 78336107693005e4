// What a kernel makes: the leaves of its result, or, where a reduction's root concatenates what it makes
// (passes/fusion/concatenated_results.h), the parts of that one.
#pragma once

#include <cstdint>
#include <vector>

#include "hlo/instruction.h"

namespace hlorun::opencl {

struct ResultPart {
  const hlo::Instruction* root = nullptr;  // what computes it; of the fused computation, where there is one
  size_t element = 0;                      // leaf of `root`
  hlo::Shape shape;
  int64_t leaf = 0;  // of the kernel's result, in which it lies
  hlo::Dims starts;  // where it begins in that leaf; empty: it is all of it
  bool IsWhole() const { return starts.empty(); }
};

// In flattened order, parts of one leaf in theirs.
std::vector<ResultPart> ResultPartsOf(const hlo::Instruction& instruction);

// Their shapes.
std::vector<hlo::Shape> PartShapesOf(const hlo::Instruction& instruction);

}  // namespace hlorun::opencl
