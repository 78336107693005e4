// What it costs to compute an instruction's elements more than once instead of storing them.
#pragma once

#include <unordered_map>
#include <vector>

#include "hlo/computation.h"

namespace hlorun::passes {

// Whether an element of the result can be computed inside a loop over somebody else's elements.
bool IsLoopOp(const hlo::Instruction& instruction);

// Whether the result has its operand's elements in the same order in memory: nothing to do at run time.
bool IsReinterpretation(const hlo::Instruction& instruction);

// A broadcast that repeats each element a few times along the minor dimension (the channels of a group). Vectors do not
// fit such runs, so that a loop over many more elements had better read it from memory.
bool SpreadsShortRuns(const hlo::Instruction& instruction);

class RecomputeCost {
 public:
  explicit RecomputeCost(const hlo::Computation& computation);

  // Whether to inline `instruction` into `kernels` kernels that evaluate `evaluations` of its elements in total.
  bool MayInline(const hlo::Instruction& instruction, double evaluations, size_t kernels) const;

 private:
  // If everything below were inlined, too.
  struct Chain {
    std::vector<const hlo::Instruction*> reads;  // large arrays, at most kManyReads
    int operations = 0;
    int expensive = 0;
  };
  static constexpr size_t kManyReads = 4;
  std::unordered_map<const hlo::Instruction*, Chain> chains_;
};

}  // namespace hlorun::passes
