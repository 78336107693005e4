// What lies in a fusion of kernels that run side by side (horizontal_fusion.h).
#pragma once

#include <cstdint>
#include <vector>

#include "hlo/instruction.h"
#include "passes/kernel_model.h"

namespace hlorun::passes {

// Its kernels.
std::vector<const hlo::Instruction*> PartsOf(const hlo::Instruction& side_by_side);

// The kernel that makes its result leaf `leaf`, and as which leaf of its own.
struct PartResult {
  const hlo::Instruction* part;
  int64_t leaf;
};
PartResult PartThatMakes(const hlo::Instruction& side_by_side, int64_t leaf);

// KernelModel::MayShareBuffer: no other part reads the operand, and the one that does may write there.
bool MayShareBesideOthers(const hlo::Instruction& side_by_side, int64_t operand, int64_t result_leaf,
                          const KernelModel& kernels);

}  // namespace hlorun::passes
