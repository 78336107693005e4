#include "passes/memory/live_ranges.h"

#include <algorithm>

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Opcode;

LiveRanges::LiveRanges(const hlo::Module& module, const Dataflow& dataflow)
    : dataflow_(dataflow), ranges_(dataflow.values().size(), Range{-1, -1}) {
  Walk(*module.entry());
  UseAll(module.entry()->root(), 2 * clock_);
}

void LiveRanges::Begin(const Instruction* definer, int64_t time) {
  const auto& leaves = dataflow_.ValuesOf(definer);
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i] == kNoValue) continue;
    const Value& value = dataflow_.value(leaves[i]);
    // Even a value that nobody reads is written.
    if (value.instruction == definer && value.leaf == static_cast<int64_t>(i)) {
      ranges_[static_cast<size_t>(leaves[i])] = {time, time | 1};
    }
  }
}

void LiveRanges::Use(ValueId value, int64_t time) {
  if (value == kNoValue) return;
  int64_t& end = ranges_[static_cast<size_t>(value)].end;
  end = std::max(end, time);
  if (!used_in_loop_.empty()) used_in_loop_.back().push_back(value);
}

void LiveRanges::UseAll(const Instruction* instruction, int64_t time) {
  for (const ValueId value : dataflow_.ValuesOf(instruction)) Use(value, time);
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
      const std::vector<ValueId> used = std::move(used_in_loop_.back());
      used_in_loop_.pop_back();
      // What comes from outside is read again by the next iteration.
      for (const ValueId value : used) {
        if (ranges_[static_cast<size_t>(value)].begin <= start) Use(value, finish);
      }
      Begin(instruction, finish + 1);
      return;
    }
    case Opcode::kConditional: {
      UseAll(instruction->operand(0), start);
      for (const hlo::Computation* branch : instruction->called_computations()) {
        Walk(*branch);
        UseAll(branch->root(), 2 * clock_++);
      }
      Begin(instruction, 2 * clock_++ + 1);
      return;
    }
    default:
      Walk(*instruction->called());
  }
}

}  // namespace hlorun::passes
