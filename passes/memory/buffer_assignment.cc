#include "passes/memory/buffer_assignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "hlo/error.h"
#include "passes/memory/colocation.h"
#include "passes/memory/offsets.h"
#include "passes/memory/scratch_blocks.h"

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Opcode;

namespace {

// Copies that are shared may enlarge the arena by this part of it.
constexpr int64_t kArenaPerSharing = 32;

}  // namespace

class BufferAssigner {
 public:
  BufferAssigner(const hlo::Module& module, PassContext& context)
      : module_(module),
        context_(context),
        dataflow_(module),
        live_(module, dataflow_),
        sets_(module, dataflow_, live_, context.kernels) {}

  BufferAssignment Run() {
    const std::vector<Flow> failed = JoinFlows(module_, dataflow_, sets_);
    if (!failed.empty()) {
      Fail(ErrorCode::kInternal, "buffer assignment: leaf {} of %{} needs a copy; run copy-insertion first",
           failed[0].leaf, failed[0].source->name());
    }
    ShareInPlace(dataflow_, live_, context_.kernels, sets_);
    MakeAllocations();
    PackArena();
    NameSlices();
    Count();
    return std::move(result_);
  }

 private:
  int32_t AddAllocation(Allocation allocation) {
    result_.allocations_.push_back(allocation);
    return static_cast<int32_t>(result_.allocations_.size()) - 1;
  }

  void MakeAllocations() {
    std::vector<ValueId> arguments;
    for (const Instruction* parameter : module_.entry()->parameters()) {
      const auto& leaves = dataflow_.ValuesOf(parameter);
      arguments.insert(arguments.end(), leaves.begin(), leaves.end());
    }
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i] == kNoValue || sets_.aliased_results()[i] >= 0) continue;
      const auto index = static_cast<int64_t>(i);
      homes_[{Home::Kind::kArgument, index}] =
          AddAllocation({Allocation::Kind::kArgument, index, dataflow_.value(arguments[i]).bytes, nullptr, -1});
    }
    AddConstants();
    const auto& results = dataflow_.ValuesOf(module_.entry()->root());
    for (size_t i = 0; i < results.size(); ++i) {
      const auto index = static_cast<int64_t>(i);
      const auto& aliases = sets_.aliased_results();
      const auto aliased = std::find(aliases.begin(), aliases.end(), index);
      if (results[i] == kNoValue || sets_.SetOf(results[i]).home != Home{Home::Kind::kResult, index}) continue;
      homes_[{Home::Kind::kResult, index}] =
          AddAllocation({Allocation::Kind::kResult, index, sets_.SetOf(results[i]).bytes, nullptr,
                         aliased == aliases.end() ? -1 : aliased - aliases.begin()});
    }
    arena_ = AddAllocation({Allocation::Kind::kArena, 0, 0, nullptr, -1});
  }

  // Equal constants share an allocation.
  void AddConstants() {
    std::unordered_map<size_t, std::vector<int32_t>> by_hash;
    for (const Instruction* instruction : live_.order()) {
      if (!instruction->IsConstant() || instruction->shape().IsTuple()) continue;
      const hlo::Literal& literal = instruction->literal();
      std::vector<int32_t>& candidates = by_hash[literal.Hash()];
      const auto equal = std::find_if(candidates.begin(), candidates.end(), [&](int32_t allocation) {
        return result_.allocations_[static_cast<size_t>(allocation)].constant->literal() == literal;
      });
      int32_t allocation = -1;
      if (equal != candidates.end()) {
        allocation = *equal;
      } else {
        allocation = AddAllocation({Allocation::Kind::kConstant, 0, instruction->shape().ByteSize(), instruction, -1});
        candidates.push_back(allocation);
      }
      homes_[{Home::Kind::kConstant, dataflow_.ValuesOf(instruction)[0]}] = allocation;
    }
  }

  void PackArena() {
    // Results lie idle until they are written: temporaries may use them.
    std::vector<Bin> bins;
    std::vector<int32_t> bin_allocations;
    std::vector<ValueId> roots;  // by block; those of scratch come after
    for (ValueId value = 0; value < static_cast<ValueId>(dataflow_.values().size()); ++value) {
      if (sets_.Find(value) != value) continue;
      const Colocation::Set& set = sets_.SetOf(value);
      if (set.home.kind == Home::Kind::kResult) {
        bins.push_back({set.bytes, set.Lives()});
        bin_allocations.push_back(homes_.at({set.home.kind, set.home.index}));
      } else if (set.home.kind == Home::Kind::kAnywhere) {
        roots.push_back(value);
        blocks_.push_back({set.bytes, set.Lives()});
      }
    }
    const std::vector<ScratchBlock> own = OwnScratch(live_, context_.kernels);
    const auto [packing, scratch] = PackWithScratch(own, bins);
    result_.allocations_[static_cast<size_t>(arena_)].bytes = packing.arena_bytes;
    const auto place = [&](size_t block, int64_t bytes) {
      const Placement& placement = packing.placements[block];
      const int32_t allocation = placement.bin < 0 ? arena_ : bin_allocations[static_cast<size_t>(placement.bin)];
      return Slice{allocation, placement.offset, bytes};
    };
    for (size_t i = 0; i < roots.size(); ++i) places_[roots[i]] = place(i, blocks_[i].bytes);
    for (size_t i = 0; i < scratch.size(); ++i) {
      const Slice slice = place(roots.size() + i, scratch[i].block.bytes);
      for (const Instruction* user : scratch[i].users) result_.scratch_[user] = slice;
    }
    // What has to live: an instruction's scratch while it runs.
    for (const ScratchBlock& s : own) blocks_.push_back(s.block);
  }

  // blocks_ and then scratch: shared where that takes little more memory.
  std::pair<Packing, std::vector<ScratchBlock>> PackWithScratch(const std::vector<ScratchBlock>& own,
                                                                const std::vector<Bin>& bins) const {
    const int64_t alignment =
        context_.device.raw_pointers ? 64 : std::max<int64_t>(64, context_.device.buffer_alignment);
    const auto pack = [&](std::vector<ScratchBlock> scratch) {
      std::vector<Block> blocks = blocks_;
      for (const ScratchBlock& s : scratch) blocks.push_back(s.block);
      return std::pair(PackBlocks(blocks, bins, alignment), std::move(scratch));
    };
    auto apart = pack(own);
    std::vector<ScratchBlock> shared = SharedScratch(own, dataflow_, context_.kernels);
    if (shared.size() == own.size()) return apart;
    auto together = pack(std::move(shared));
    const int64_t most = apart.first.arena_bytes + apart.first.arena_bytes / kArenaPerSharing;
    return together.first.arena_bytes <= most ? together : apart;
  }

  Slice SliceOf(ValueId value) const {
    if (value == kNoValue) return {};
    const Home& home = sets_.SetOf(value).home;
    Slice slice;
    if (home.kind == Home::Kind::kAnywhere) {
      slice = places_.at(sets_.Find(value));
    } else {
      slice.allocation = homes_.at({home.kind, home.index});
    }
    slice.bytes = dataflow_.value(value).bytes;
    return slice;
  }

  void NameSlices() {
    for (const Instruction* instruction : live_.order()) {
      std::vector<Slice>& slices = result_.slices_[instruction];
      for (const ValueId value : dataflow_.ValuesOf(instruction)) slices.push_back(SliceOf(value));
    }
    result_.results_ = result_.slices_.at(module_.entry()->root());
  }

  void Count() {
    MemoryStatistics& statistics = result_.statistics_;
    for (const Allocation& allocation : result_.allocations_) {
      switch (allocation.kind) {
        case Allocation::Kind::kArgument: statistics.argument_bytes += allocation.bytes; break;
        case Allocation::Kind::kConstant: statistics.constant_bytes += allocation.bytes; break;
        case Allocation::Kind::kResult: statistics.result_bytes += allocation.bytes; break;
        case Allocation::Kind::kArena: statistics.arena_bytes += allocation.bytes; break;
      }
    }
    // Results that are complete stay live, those to come do not count yet.
    std::map<int64_t, int64_t> changes;
    const auto add = [&](const Block& block) {
      for (const Range& range : block.lives) {
        changes[range.begin] += block.bytes;
        changes[range.end + 1] -= block.bytes;
      }
    };
    for (const Block& block : blocks_) add(block);
    for (ValueId value = 0; value < static_cast<ValueId>(dataflow_.values().size()); ++value) {
      const Colocation::Set& set = sets_.SetOf(value);
      if (sets_.Find(value) == value && set.home.kind == Home::Kind::kResult) add({set.bytes, set.Lives()});
    }
    int64_t live = 0, largest = 0;
    for (const auto& [time, change] : changes) largest = std::max(largest, live += change);
    const int64_t fixed = statistics.argument_bytes + statistics.constant_bytes;
    statistics.largest_live_bytes = fixed + largest;
    statistics.peak_bytes = fixed + statistics.result_bytes + statistics.arena_bytes;
  }

  const hlo::Module& module_;
  PassContext& context_;
  const Dataflow dataflow_;
  const LiveRanges live_;
  Colocation sets_;
  BufferAssignment result_;
  std::map<std::pair<Home::Kind, int64_t>, int32_t> homes_;  // allocations
  int32_t arena_ = -1;
  std::vector<Block> blocks_;
  std::unordered_map<ValueId, Slice> places_;  // by set, of those in the arena or in idle results
};

const Slice& BufferAssignment::SliceOf(const Instruction* instruction, int64_t leaf) const {
  const auto it = slices_.find(instruction);
  HLORUN_CHECK(it != slices_.end() && leaf < static_cast<int64_t>(it->second.size()));
  return it->second[static_cast<size_t>(leaf)];
}

Slice BufferAssignment::ScratchOf(const Instruction* instruction) const {
  const auto it = scratch_.find(instruction);
  return it == scratch_.end() ? Slice{} : it->second;
}

std::string BufferAssignment::ToString() const {
  constexpr const char* kKinds[] = {"argument", "constant", "result", "arena"};
  std::string text =
      fmt::format("peak {} bytes: arguments {}, constants {}, results {}, arena {}; largest live set {}\n",
                  statistics_.peak_bytes, statistics_.argument_bytes, statistics_.constant_bytes,
                  statistics_.result_bytes, statistics_.arena_bytes, statistics_.largest_live_bytes);
  std::vector<std::vector<std::pair<int64_t, std::string>>> contents(allocations_.size());
  const auto list = [&](const Slice& slice, std::string what) {
    if (slice.allocation < 0) return;
    contents[static_cast<size_t>(slice.allocation)].push_back(
        {slice.offset, fmt::format("  {:>12} +{:<12} {}\n", slice.offset, slice.bytes, what)});
  };
  for (const auto& [instruction, slices] : slices_) {
    for (size_t leaf = 0; leaf < slices.size(); ++leaf) {
      list(slices[leaf],
           fmt::format("%{}{} in {}", instruction->name(), slices.size() > 1 ? fmt::format(" leaf {}", leaf) : "",
                       instruction->parent()->name()));
    }
  }
  for (const auto& [instruction, slice] : scratch_) list(slice, fmt::format("scratch of %{}", instruction->name()));
  for (size_t i = 0; i < allocations_.size(); ++i) {
    const Allocation& allocation = allocations_[i];
    text += fmt::format("allocation {}: {}", i, kKinds[static_cast<int>(allocation.kind)]);
    if (allocation.constant != nullptr) text += fmt::format(" %{}", allocation.constant->name());
    if (allocation.kind == Allocation::Kind::kArgument || allocation.kind == Allocation::Kind::kResult) {
      text += fmt::format(" {}", allocation.index);
    }
    if (allocation.aliased_argument >= 0) text += fmt::format(" over argument {}", allocation.aliased_argument);
    text += fmt::format(", {} bytes\n", allocation.bytes);
    std::sort(contents[i].begin(), contents[i].end());
    for (const auto& [offset, line] : contents[i]) text += line;
  }
  return text;
}

BufferAssignment AssignBuffers(const hlo::Module& module, PassContext& context) {
  return BufferAssigner(module, context).Run();
}

}  // namespace hlorun::passes
