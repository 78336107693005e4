#include "passes/memory/live_ranges.h"

#include <algorithm>
#include <iterator>

#include "passes/control/predication.h"

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Opcode;

LiveRanges::LiveRanges(const hlo::Module& module, const Dataflow& dataflow)
    : dataflow_(dataflow),
      begins_(dataflow.values().size(), -1),
      uses_(dataflow.values().size()),
      ranges_(dataflow.values().size()) {
  Walk(*module.entry());
  UseAll(module.entry()->root(), 2 * clock_);
  for (size_t i = 0; i < ranges_.size(); ++i) FindRanges(static_cast<ValueId>(i));
}

void LiveRanges::Begin(const Instruction* definer, int64_t time) {
  const auto& leaves = dataflow_.ValuesOf(definer);
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i] == kNoValue) continue;
    const Value& value = dataflow_.value(leaves[i]);
    if (value.instruction != definer || value.leaf != static_cast<int64_t>(i)) continue;
    begins_[static_cast<size_t>(leaves[i])] = time;
    uses_[static_cast<size_t>(leaves[i])] = {time | 1};  // even a value that nobody reads is written
  }
}

void LiveRanges::Use(ValueId value, int64_t time) {
  if (value == kNoValue) return;
  uses_[static_cast<size_t>(value)].push_back(time);
  if (!used_in_loop_.empty()) used_in_loop_.back().push_back(value);
}

void LiveRanges::UseAll(const Instruction* instruction, int64_t time) {
  for (const ValueId value : dataflow_.ValuesOf(instruction)) Use(value, time);
}

void LiveRanges::FindRanges(ValueId value) {
  const auto index = static_cast<size_t>(value);
  const int64_t begin = begins_[index];
  AddPieces(value, {begin, uses_[index].empty() ? begin : std::max(begin, uses_[index].back())});
}

void LiveRanges::AddPieces(ValueId value, Range whole) {
  auto& ranges = ranges_[static_cast<size_t>(value)];
  const auto& uses = uses_[static_cast<size_t>(value)];
  const auto dies_in = [&](const Branching& branching) {
    return whole.begin <= branching.span.begin && branching.span.begin < whole.end && whole.end <= branching.span.end;
  };
  const auto branching = std::find_if(branchings_.begin(), branchings_.end(), dies_in);
  if (branching == branchings_.end()) {
    ranges.push_back(whole);
    return;
  }
  ranges.push_back({whole.begin, branching->span.begin + 1});
  for (const Range& branch : branching->branches) {
    const auto after = std::upper_bound(uses.begin(), uses.end(), branch.end);
    if (after == uses.begin() || *std::prev(after) < branch.begin) continue;
    AddPieces(value, {branch.begin, *std::prev(after)});
  }
}

void LiveRanges::Walk(const hlo::Computation& computation) {
  for (const auto& owned : computation.instructions()) {
    const Instruction* instruction = owned.get();
    const int64_t time = 2 * clock_++;
    times_[instruction] = time;
    order_.push_back(instruction);
    if (instruction->Has(hlo::kControl)) {
      WalkControl(instruction, time);
    } else if (!MovesNoData(*instruction)) {
      for (const Instruction* operand : instruction->operands()) UseAll(operand, time);
      Begin(instruction, time);
    }
  }
}

void LiveRanges::WalkControl(const Instruction* instruction, int64_t start) {
  switch (instruction->opcode()) {
    case Opcode::kWhile: {
      UseAll(instruction->operand(0), start);
      used_in_loop_.emplace_back();
      Begin(instruction->while_body()->parameter(0), start + 1);
      Walk(*instruction->while_condition());
      const int64_t decided = 2 * clock_++;
      UseAll(instruction->while_condition()->root(), decided);
      // The loop may end here, whatever the body reads: the carried leaves are its result.
      UseAll(instruction->while_body()->parameter(0), decided);
      Walk(*instruction->while_body());
      const int64_t finish = 2 * clock_++;
      UseAll(instruction->while_body()->root(), finish);
      if (PredicationOf(*instruction))
        UseAll(instruction->while_condition()->root(), finish);  // each kernel of the body reads it
      const std::vector<ValueId> used = std::move(used_in_loop_.back());
      used_in_loop_.pop_back();
      // What comes from outside is read again by the next iteration.
      for (const ValueId value : used) {
        if (begins_[static_cast<size_t>(value)] <= start) Use(value, finish);
      }
      Begin(instruction, finish + 1);
      return;
    }
    case Opcode::kConditional: {
      UseAll(instruction->operand(0), start);
      const size_t number = branchings_.size();
      branchings_.emplace_back();
      std::vector<Range> branches;
      for (const hlo::Computation* branch : instruction->called_computations()) {
        const int64_t first = 2 * clock_;
        Walk(*branch);
        // What all branches return alike is no slot of the conditional's: it is read where the result is.
        const auto& results = dataflow_.ValuesOf(branch->root());
        for (size_t i = 0; i < results.size(); ++i) {
          if (results[i] != dataflow_.ValuesOf(instruction)[i]) Use(results[i], 2 * clock_);
        }
        branches.push_back({first, 2 * clock_++});
      }
      branchings_[number] = {{start, 2 * clock_}, std::move(branches)};
      // Kernels of all branches read it, those that do nothing too: it dies in none of them.
      if (IsPredicated(*instruction)) UseAll(instruction->operand(0), 2 * clock_ + 1);
      Begin(instruction, 2 * clock_++ + 1);
      return;
    }
    default: Walk(*instruction->called());
  }
}

}  // namespace hlorun::passes
