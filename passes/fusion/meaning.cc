#include "passes/fusion/meaning.h"

#include "hlo/text/printer.h"

namespace hlorun::passes {

std::string MeaningOf(const hlo::Instruction& instruction) {
  constexpr hlo::PrintOptions kByMeaning{.canonical = true};
  if (!instruction.Is(hlo::Opcode::kFusion)) {
    std::string meaning = hlo::PrintInstruction(instruction, kByMeaning);
    for (const hlo::Instruction* operand : instruction.operands()) meaning += operand->shape().ToString(false);
    return meaning;
  }
  const hlo::Computation& whole = *instruction.called();
  std::string meaning = instruction.backend_config + hlo::PrintComputation(whole, kByMeaning);
  for (const auto& inner : whole.instructions()) {
    for (const hlo::Computation* called : inner->called_computations())
      meaning += hlo::PrintComputation(*called, kByMeaning);
  }
  return meaning;
}

}  // namespace hlorun::passes
