// Scratch memory of instructions' kernels (KernelModel::ScratchBytes) as blocks to be packed.
#pragma once

#include <vector>

#include "passes/kernel_model.h"
#include "passes/memory/dataflow.h"
#include "passes/memory/live_ranges.h"
#include "passes/memory/offsets.h"

namespace hlorun::passes {

struct ScratchBlock {
  std::vector<const hlo::Instruction*> users;  // in the order of the line of time
  Block block;
};

// One for each instruction that needs scratch; it lives while the instruction runs.
std::vector<ScratchBlock> OwnScratch(const LiveRanges& live, const KernelModel& kernels);

// The same, but one for all instructions of a computation that copy one array into as much scratch: it lives from the
// first to the last, so that the first one's copy may serve the others (parts of a product, products of one array).
std::vector<ScratchBlock> SharedScratch(const std::vector<ScratchBlock>& own, const Dataflow& dataflow,
                                        const KernelModel& kernels);

}  // namespace hlorun::passes
