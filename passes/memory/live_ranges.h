// Live ranges on one line of time that runs through all control computations.
//
// The instructions of a loop's condition and body, of a branch or a callee count between the start and the end of the
// instruction that calls them. Instruction number t reads at 2t and writes from 2t on; what it defines is live from 2t
// (so that it overlaps the operands, unless sharing is allowed) and the values that exist on the line but are written by
// nobody (carried leaves, results of loops and conditionals) from 2t + 1.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "hlo/module.h"
#include "passes/memory/dataflow.h"

namespace hlorun::passes {

// Both ends included.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  bool Overlaps(const Range& other) const { return begin <= other.end && other.begin <= end; }
  bool operator==(const Range&) const = default;
};

class LiveRanges {
 public:
  // Lists of control computations are execution orders.
  LiveRanges(const hlo::Module& module, const Dataflow& dataflow);

  const Range& RangeOf(ValueId value) const { return ranges_[static_cast<size_t>(value)]; }
  // 2t of an instruction.
  int64_t TimeOf(const hlo::Instruction* instruction) const { return times_.at(instruction); }
  // Time after the last instruction; the entry's results are live until then.
  int64_t end() const { return 2 * clock_; }
  // Instructions of all control computations in the order of the line.
  const std::vector<const hlo::Instruction*>& order() const { return order_; }

 private:
  void Walk(const hlo::Computation& computation);
  void WalkControl(const hlo::Instruction* instruction, int64_t start);
  void Begin(const hlo::Instruction* definer, int64_t time);
  void Use(ValueId value, int64_t time);
  void UseAll(const hlo::Instruction* instruction, int64_t time);

  const Dataflow& dataflow_;
  int64_t clock_ = 0;
  std::vector<Range> ranges_;
  std::unordered_map<const hlo::Instruction*, int64_t> times_;
  std::vector<const hlo::Instruction*> order_;
  // Values used so far inside each open loop, innermost last.
  std::vector<std::vector<ValueId>> used_in_loop_;
};

}  // namespace hlorun::passes
