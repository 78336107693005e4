// A sort by several keys, of which each decides where those before it are equal, becomes stable sorts by one key each,
// the last key first: those take time linear in the length, on all cores.
//
//   before: sort(x, y, z), comparator x0 < x1 or (x0 = x1 and y0 < y1)
//   after:  (x', y', z') = sort(x, y, z), comparator y0 < y1, is_stable
//           sort(x', y', z'), comparator x0 < x1, is_stable
//
// Floats are in total order, or behind a function that makes one representative of what is equal, as JAX's keys are.
// CPU class, and rows that are long enough to gain. GPU class merges, in one sort whatever the comparator, for which
// several keys are one (codegen/sort_key_words.h): a sort each would be as many times the passes over memory.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class SplitSorts : public Pass {
 public:
  std::string_view name() const override { return "split-sorts"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
