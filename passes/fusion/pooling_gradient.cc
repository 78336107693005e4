#include "passes/fusion/pooling_gradient.h"

#include <algorithm>

#include "hlo/elementwise.h"
#include "passes/fusion/hero.h"

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Opcode;

namespace {

// Vectors go along the last dimension.
bool KeepsVectors(const Instruction& pad) {
  const std::vector<hlo::PaddingDimension>& padding = pad.As<hlo::attr::Pad>().padding;
  const auto is_plain = [](const hlo::PaddingDimension& p) { return p.interior == 0; };
  return !padding.empty() && std::all_of(padding.begin(), padding.end(), is_plain) && padding.back().low == 0 &&
         padding.back().high == 0;
}

}  // namespace

bool FitsSelection(const Instruction& instruction, const Instruction& gradient) {
  if (instruction.Is(Opcode::kBroadcast)) return true;
  return instruction.Is(Opcode::kPad) && gradient.operand(0) == &instruction && KeepsVectors(instruction);
}

bool FitsGradientsLoop(const Instruction& instruction) {
  return hlo::IsElementwise(instruction) || instruction.Is(Opcode::kBroadcast) || instruction.Is(Opcode::kSlice) ||
         (instruction.Is(Opcode::kPad) && KeepsVectors(instruction));
}

bool MayFinishGradient(const Cluster& cluster, const Instruction& gradient, double evaluations) {
  const hlo::Shape& shape = cluster.roots[0]->shape();
  if (cluster.hero != nullptr || HeroOf(*cluster.roots[0]).kind != KernelKind::kLoop) return false;
  if (shape.rank() == 0 || shape.rank() != gradient.shape().rank()) return false;
  return evaluations <= static_cast<double>(gradient.shape().ElementCount()) &&
         shape.dimensions().back() == gradient.shape().dimensions().back() &&
         std::all_of(cluster.members.begin(), cluster.members.end(),
                     [](const Instruction* member) { return FitsGradientsLoop(*member); });
}

}  // namespace hlorun::passes
