#include "passes/fusion/pooling.h"

#include "hlo/cost_analysis.h"
#include "passes/fusion/cumulative_window.h"

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Opcode;

namespace {

// Each step of arithmetic on 16 bits is one on 32 and a rounding of several, which overlapping windows repeat: batch
// norm in bf16 before a window of 3x3 elements, 2 apart, takes 1.3 times as long inside of it.
bool Rounds(const Instruction& instruction) {
  if (!hlo::IsFloating(instruction.shape().element_type()) || hlo::BitsOf(instruction.shape().element_type()) >= 32)
    return false;
  switch (instruction.opcode()) {
    case Opcode::kAdd:
    case Opcode::kDivide:
    case Opcode::kMultiply:
    case Opcode::kSubtract: return true;
    default: return instruction.Has(hlo::kExpensive);
  }
}

bool Overlaps(const Instruction& pooling) {
  constexpr double kSlack = 1.01;
  return hlo::ElementsInWindows(pooling) > kSlack * static_cast<double>(pooling.operand(0)->shape().ElementCount());
}

}  // namespace

bool IsPooling(const Instruction& instruction) {
  return instruction.Is(Opcode::kReduceWindow) && !CumulativeWindowOf(instruction).has_value();
}

bool FitsTaps(const Instruction& instruction, const Instruction& pooling) {
  if (instruction.Is(Opcode::kBroadcast) || instruction.Is(Opcode::kIota)) return true;
  return (instruction.Has(hlo::kElementwise) || instruction.Is(Opcode::kClamp)) &&
         !(Rounds(instruction) && Overlaps(pooling));
}

bool IsFreeInTaps(const Instruction& instruction) {
  return instruction.Is(Opcode::kConvert) && instruction.shape().element_type() == hlo::ElementType::kF32 &&
         instruction.operand(0)->shape().element_type() == hlo::ElementType::kBF16;
}

}  // namespace hlorun::passes
