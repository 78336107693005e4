// Buffer assignment: where every value of a scheduled module lies.
//
// Runs last: the module is scheduled (list order of each control computation is execution order), copies have been
// inserted, so every (instruction, leaf) of a control computation has exactly one slice. Tuples, get-tuple-element,
// bitcast, while, conditional and call move no data: their leaves name the slices of what they pass on.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "hlo/module.h"
#include "passes/pass.h"

namespace hlorun::passes {

struct Allocation {
  enum class Kind : uint8_t {
    kArgument,  // entry parameter leaf `index` (flattened over all parameters); never written
    kConstant,  // `constant`
    kResult,    // result leaf `index` (flattened); lives on after the run
    kArena,     // temporaries; exactly one such allocation, possibly of 0 bytes
  };
  Kind kind = Kind::kArena;
  int64_t index = 0;
  int64_t bytes = 0;
  const hlo::Instruction* constant = nullptr;
  // kResult: the argument leaf whose memory it takes over when the caller donates it; otherwise the runtime copies that
  // argument in before the run. -1: none. From input_output_alias.
  int64_t aliased_argument = -1;
};

struct Slice {
  int32_t allocation = -1;
  int64_t offset = 0;
  int64_t bytes = 0;
  bool operator==(const Slice&) const = default;
  bool Overlaps(const Slice& other) const {
    return allocation == other.allocation && offset < other.offset + other.bytes && other.offset < offset + bytes;
  }
};

struct MemoryStatistics {
  int64_t arena_bytes = 0;
  int64_t argument_bytes = 0;
  int64_t constant_bytes = 0;
  int64_t result_bytes = 0;
  int64_t largest_live_bytes =
      0;                   // lower bound: arguments, constants and live values (scratch included) at the worst moment
  int64_t peak_bytes = 0;  // what the plan takes: arguments + constants + results + arena
};

class BufferAssignment {
 public:
  const std::vector<Allocation>& allocations() const { return allocations_; }
  // Slice of a leaf of an instruction's result. Leaves count in flattened order.
  const Slice& SliceOf(const hlo::Instruction* instruction, int64_t leaf = 0) const;
  // Scratch of an instruction (KernelModel::ScratchBytes), allocation -1 when it needs none.
  Slice ScratchOf(const hlo::Instruction* instruction) const;
  // Slices of the entry's result leaves; they may lie in argument or constant allocations (then the result shares or
  // copies that array).
  const std::vector<Slice>& results() const { return results_; }
  const MemoryStatistics& statistics() const { return statistics_; }
  std::string ToString() const;  // the memory plan, for dumps

 private:
  friend class BufferAssigner;
  std::vector<Allocation> allocations_;
  std::unordered_map<const hlo::Instruction*, std::vector<Slice>> slices_;
  std::unordered_map<const hlo::Instruction*, Slice> scratch_;
  std::vector<Slice> results_;
  MemoryStatistics statistics_;
};

BufferAssignment AssignBuffers(const hlo::Module& module, PassContext& context);

}  // namespace hlorun::passes
