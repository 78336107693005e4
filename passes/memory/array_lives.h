// The arrays of a scheduled module on its line of time (live_ranges.h): who makes each, who reads it and when, how many
// bytes live at each moment. Kept up to date while instructions are made again in front of later readers.
//
// Time 2t is while the t-th instruction runs. What is made again in front of it runs at 2t - 1, all of it together.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "hlo/module.h"
#include "passes/memory/colocation.h"
#include "passes/memory/dataflow.h"
#include "passes/memory/live_profile.h"
#include "passes/memory/live_ranges.h"

namespace hlorun::passes {

using ArrayId = int32_t;  // that of its value, for what the module had at first

// A kernel that reads an array as its operand number `operand`.
struct Read {
  int64_t time = 0;
  hlo::Instruction* reader = nullptr;
  int64_t operand = 0;
};

struct LivingArray {
  hlo::Instruction* maker = nullptr;  // null: a leaf of control flow; the instruction, for arguments and constants
  int64_t bytes = 0;
  Range life;                // up to the first hole
  std::vector<Read> reads;   // by kernels of the maker's computation, by time
  bool is_given = false;     // an argument that nothing overwrites, or a constant: is there at any time
  bool escapes = false;      // tuples, control flow, asynchronous ops or results hold it
  bool is_updated = false;   // a reader would like to write its result over it
  bool ends_shared = false;  // what its last reader makes lies in its place
  bool is_preceded = false;  // another lies in its place before
  bool is_followed = false;  // or behind
};

// Whether all that it does is to give a name to an array that its operand holds.
bool OnlyNames(const hlo::Instruction& instruction);

class ArrayLives {
 public:
  // All references must outlive it. Lists of control computations are execution orders.
  ArrayLives(const hlo::Module& module, const KernelModel& kernels);

  size_t size() const { return arrays_.size(); }
  LivingArray& at(ArrayId array) { return arrays_[static_cast<size_t>(array)]; }
  const LivingArray& at(ArrayId array) const { return arrays_[static_cast<size_t>(array)]; }
  // By leaf of the result; kNoValue for tokens.
  const std::vector<ArrayId>& ArraysOf(const hlo::Instruction* instruction) const;
  LiveProfile& profile() { return profile_; }
  // 2t of an instruction.
  int64_t TimeOf(const hlo::Instruction* instruction) const { return live_.TimeOf(instruction); }
  // What runs at `time`, or ran last, of the instructions that the module had at first; and the bytes of its operands,
  // its results and its scratch, those of one place once, arguments and constants left out.
  const hlo::Instruction& InstructionAt(int64_t time) const;
  int64_t WorkingBytes(const hlo::Instruction& instruction) const;

  // Takes in `made`, which stands in front of what runs at `time` by now, with its reads.
  void Insert(hlo::Instruction* made, int64_t time);
  // The same for an instruction that moves no data: it names `arrays`.
  void Name(const hlo::Instruction* instruction, std::vector<ArrayId> arrays) {
    made_[instruction] = std::move(arrays);
  }
  void AddRead(ArrayId array, Read read);

 private:
  void AddArrays();
  void AddInstruction(hlo::Instruction* instruction);
  void FillProfile();

  const KernelModel& kernels_;
  const Dataflow dataflow_;
  const LiveRanges live_;
  Colocation sets_;
  std::vector<LivingArray> arrays_;
  LiveProfile profile_;
  std::unordered_map<const hlo::Instruction*, std::vector<ArrayId>> made_;
};

}  // namespace hlorun::passes
