#include "passes/fusion/side_by_side.h"

#include <algorithm>

#include "hlo/computation.h"
#include "passes/fusion/hero.h"

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Opcode;

std::vector<const Instruction*> PartsOf(const Instruction& side_by_side) {
  std::vector<const Instruction*> parts;
  for (const auto& inner : side_by_side.called()->instructions()) {
    if (inner->Is(Opcode::kCopy) || HeroOf(*inner).kind != KernelKind::kNone) parts.push_back(inner.get());
  }
  return parts;
}

PartResult PartThatMakes(const Instruction& side_by_side, int64_t leaf) {
  const Instruction* result = side_by_side.called()->root()->operand(leaf);
  if (result->Is(Opcode::kGetTupleElement)) return {result->operand(0), result->tuple_index()};
  return {result, 0};
}

bool MayShareBesideOthers(const Instruction& side_by_side, int64_t operand, int64_t result_leaf,
                          const KernelModel& kernels) {
  const auto [part, leaf] = PartThatMakes(side_by_side, result_leaf);
  const Instruction* parameter = side_by_side.called()->parameter(operand);
  const bool reads_alone = std::all_of(parameter->users().begin(), parameter->users().end(),
                                       [part = part](const Instruction* user) { return user == part; });
  return reads_alone && !parameter->users().empty() &&
         kernels.MayShareBuffer(*part, part->OperandIndex(parameter), leaf);
}

}  // namespace hlorun::passes
