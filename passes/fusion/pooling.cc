#include "passes/fusion/pooling.h"

#include <algorithm>

#include "hlo/cost_analysis.h"
#include "hlo/cumulative_window.h"
#include "hlo/elementwise.h"

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Opcode;

namespace {

constexpr double kOnce = 1.01;

// What overlapping windows had rather read than repeat: functions, and arithmetic on 16 bits, each step of which is one
// on 32 and a rounding of several (batch norm in bf16 before a window of 3x3 elements, 2 apart, takes 1.3 times as long
// inside of it).
bool IsCostly(const Instruction& instruction) {
  if (instruction.Has(hlo::kExpensive)) return true;
  if (!hlo::IsFloating(instruction.shape().element_type()) || hlo::BitsOf(instruction.shape().element_type()) >= 32)
    return false;
  switch (instruction.opcode()) {
    case Opcode::kAdd:
    case Opcode::kDivide:
    case Opcode::kMultiply:
    case Opcode::kSubtract: return true;
    default: return false;
  }
}

// How often the windows read an element of the operand.
double Overlap(const Instruction& pooling) {
  const auto elements = static_cast<double>(pooling.operand(0)->shape().ElementCount());
  return hlo::ElementsInWindows(pooling) / std::max(1.0, elements);
}

}  // namespace

bool IsPooling(const Instruction& instruction) {
  return instruction.Is(Opcode::kReduceWindow) && !CumulativeWindowOf(instruction).has_value();
}

bool FitsTaps(const Instruction& instruction, const Instruction& pooling) {
  if (instruction.Is(Opcode::kBroadcast) || instruction.Is(Opcode::kIota)) return true;
  return hlo::IsElementwise(instruction) && !(IsCostly(instruction) && Overlap(pooling) > kOnce);
}

bool IsFreeInTaps(const Instruction& instruction, const Instruction& pooling) {
  // Windows of 3x3 elements, 1 apart: 1.1 to 1.4 times as fast with it; of 5x5: 1.2 where vectors run along the
  // channels, 0.9 where along rows.
  constexpr double kMostOften = 9;
  return instruction.Is(Opcode::kConvert) && Overlap(pooling) <= kMostOften &&
         instruction.shape().element_type() == hlo::ElementType::kF32 &&
         instruction.operand(0)->shape().element_type() == hlo::ElementType::kBF16;
}

}  // namespace hlorun::passes
