#include "passes/memory/scratch_blocks.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace hlorun::passes {

using hlo::Instruction;

std::vector<ScratchBlock> OwnScratch(const LiveRanges& live, const KernelModel& kernels) {
  std::vector<ScratchBlock> scratch;
  for (const Instruction* instruction : live.order()) {
    if (MovesNoData(*instruction)) continue;
    const int64_t bytes = kernels.ScratchBytes(*instruction);
    if (bytes <= 0) continue;
    const int64_t time = live.TimeOf(instruction);
    scratch.push_back({{instruction}, {bytes, {{time, time + 1}}}});
  }
  return scratch;
}

std::vector<ScratchBlock> SharedScratch(const std::vector<ScratchBlock>& own, const Dataflow& dataflow,
                                        const KernelModel& kernels) {
  using Copy = std::tuple<const hlo::Computation*, ValueId, int64_t>;  // of which array, into how many bytes
  std::map<Copy, size_t> places;
  std::vector<ScratchBlock> shared;
  for (const ScratchBlock& scratch : own) {
    const Instruction* user = scratch.users[0];
    std::vector<Copy> copies;
    for (const int64_t operand : kernels.CopiedOperands(*user))
      copies.emplace_back(user->parent(), dataflow.ValuesOf(user->operand(operand))[0], scratch.block.bytes);
    const auto known =
        std::find_if(copies.begin(), copies.end(), [&](const Copy& copy) { return places.contains(copy); });
    if (known != copies.end()) {
      ScratchBlock& before = shared[places.at(*known)];
      before.users.push_back(user);
      before.block.lives[0].end = scratch.block.lives[0].end;
    } else {
      for (const Copy& copy : copies) places.emplace(copy, shared.size());
      shared.push_back(scratch);
    }
  }
  return shared;
}

}  // namespace hlorun::passes
