// Where the values of a region lie: the memory passes, run on the region as if it were a module of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hlo/module.h"
#include "passes/pass.h"

namespace hlorun::passes {

struct RegionPlace {
  enum class Kind : uint8_t {
    kNowhere,   // a token, or no bytes
    kOperand,   // where the region's operand `index` lies
    kResult,    // where result leaf `index` lies
    kConstant,  // `constant`, never written
    kPrivate,   // slot `index`: small, the kernel's own
    kScratch,   // slot `index`, at `offset` of the region's scratch memory
  };
  Kind kind = Kind::kNowhere;
  int64_t index = 0;
  int64_t offset = 0;
  int64_t bytes = 0;
  const hlo::Instruction* constant = nullptr;
  bool operator==(const RegionPlace& other) const {
    return kind == other.kind && index == other.index && kind != Kind::kNowhere;
  }
  // Slots of scratch memory that are not in use at the same time may lie in the same part of it.
  bool Overlaps(const RegionPlace& other) const {
    if (kind != Kind::kScratch || other.kind != Kind::kScratch) return *this == other;
    return offset < other.offset + other.bytes && other.offset < offset + bytes;
  }
};

// For each result leaf of a region the operand whose memory it updates in place, so that only a large array's changed
// part is written; -1 for none. Where the two are not one array the operand is copied to the result first.
std::vector<int64_t> RegionAliases(const hlo::Instruction& region);

// Whether result leaf `leaf` may lie in the memory of `operand`. Small results wait in private memory until the region
// has read all that it reads, so any operand of their type and size will do.
bool MayOverwriteOperand(const hlo::Instruction& region, int64_t operand, int64_t leaf);

// Whether a region may put result leaf `leaf` of `kernel`, one of its steps, where that step's operand lies. As
// `kernels` has it for the kernel alone, but for rows: a region makes each of their elements of a whole row.
bool MayShareInRegion(const KernelModel& kernels, const hlo::Instruction& kernel, int64_t operand, int64_t leaf);

class RegionLayout {
 public:
  RegionLayout(const hlo::Instruction& region, const DeviceSpec& device, const CompileOptions& options,
               const KernelModel& kernels);
  ~RegionLayout();

  // The region as a module: its entry's parameters are the region's operands. Scheduled, copies inserted.
  const hlo::Module& module() const { return *module_; }
  RegionPlace PlaceOf(const hlo::Instruction* instruction, int64_t leaf = 0) const;
  int64_t scratch_bytes() const { return scratch_bytes_; }

 private:
  struct Analyses;
  std::unique_ptr<hlo::Module> module_;
  std::unique_ptr<Analyses> analyses_;
  std::vector<RegionPlace> places_;  // by value that represents its set
  int64_t scratch_bytes_ = 0;
};

}  // namespace hlorun::passes
