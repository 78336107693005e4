// Live ranges on one line of time that runs through all control computations.
//
// The instructions of a loop's condition and body, of a branch or a callee count between the start and the end of the
// instruction that calls them. Instruction number t reads at 2t and writes from 2t on; what it defines is live from 2t
// (so that it overlaps the operands, unless sharing is allowed) and the values that exist on the line but are written
// by nobody (carried leaves, results of loops and conditionals) from 2t + 1.
//
// Branches of a conditional follow one another on the line though one of them runs: a value that is last read in a
// branch is dead in each branch from its last use there on, so its life has holes.
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

  // Sorted, disjoint, never empty.
  const std::vector<Range>& RangesOf(ValueId value) const { return ranges_[static_cast<size_t>(value)]; }
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
  void FindRanges(ValueId value);
  void AddPieces(ValueId value, Range whole);

  struct Branching {
    Range span;
    std::vector<Range> branches;
  };

  int64_t clock_ = 0;
  std::vector<int64_t> begins_;             // by value
  std::vector<std::vector<int64_t>> uses_;  // by value, in the order of time
  std::vector<std::vector<Range>> ranges_;  // by value
  std::vector<Branching> branchings_;       // outer before inner
  std::unordered_map<const hlo::Instruction*, int64_t> times_;
  std::vector<const hlo::Instruction*> order_;
  // Values used so far inside each open loop, innermost last.
  std::vector<std::vector<ValueId>> used_in_loop_;
};

}  // namespace hlorun::passes
