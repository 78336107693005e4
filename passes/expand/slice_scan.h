// The recursion over halves that jax.lax.associative_scan writes, found in the graph.
//
//   scan(e) of n elements along a dimension, e being one array or several that a function of 2k arguments combines:
//     halves = function(e[0::2], e[1::2])                  n / 2 elements each
//     odd    = scan(halves)                                halves itself where that is one element
//     even   = concatenate(e[0:1], function(odd, e[2::2]))  without the last of odd where n is even
//     result = pad(even, 0, interior 1) + pad(odd, 0, interior 1)      `or` where elements are truth values
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "hlo/computation.h"

namespace hlorun::passes {

// Two interleaved parts of a scan's result, as each level of the recursion ends in.
struct Interleaving {
  hlo::Instruction* elements;  // of this level: where the first result comes from
  hlo::Instruction* even;      // results 2, 4, 6 ...; null where there are none
  hlo::Instruction* odd;       // results 1, 3, 5 ...
  int64_t dimension;
};

// What `op` interleaves; nothing for other instructions, most of which cost two comparisons.
std::optional<Interleaving> InterleavingOf(const hlo::Instruction& op);

// An instruction of a scan's function that stands for an argument of it.
struct ScanArgument {
  size_t array;   // of the scan's elements
  bool is_right;  // the later of the two that are combined
};

struct SliceScan {
  int64_t dimension;
  std::vector<hlo::Instruction*> elements;  // arrays of the same dimensions; the first is the one of the root asked for
  std::vector<hlo::Instruction*> results;   // of each; null where nothing reads them, or where they are not looked for
  // The function, as the first level has it: its results, one an array, in terms of instructions that are `arguments`,
  // uniform constants and elementwise ops.
  std::vector<hlo::Instruction*> function;
  std::unordered_map<const hlo::Instruction*, ScanArgument> arguments;
  std::vector<const hlo::Instruction*> inner;  // interleavings of the levels below, which belong to this scan
};

// The scan whose result `root` is: every level applies the same function of elementwise ops to the same slices. Time is
// linear in what it consists of. Scans of fewer than four elements are not worth it.
std::optional<SliceScan> SliceScanOf(hlo::Instruction* root);

// Results of a scan that are found one after another, without looking again at those there are.
class ScanResults {
 public:
  explicit ScanResults(SliceScan& scan);
  ~ScanResults();
  // Adds `root` to the results of the scan if it is what that gives for another of its arrays.
  bool Add(hlo::Instruction* root);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hlorun::passes
