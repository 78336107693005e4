#include "hlo/comparator.h"

namespace hlorun::hlo {

ComparisonDirection Mirrored(ComparisonDirection direction) {
  switch (direction) {
    case ComparisonDirection::kLt: return ComparisonDirection::kGt;
    case ComparisonDirection::kLe: return ComparisonDirection::kGe;
    case ComparisonDirection::kGt: return ComparisonDirection::kLt;
    case ComparisonDirection::kGe: return ComparisonDirection::kLe;
    default: return direction;
  }
}

std::optional<ComparisonDirection> DirectionOf(const Computation& comparator) {
  const Instruction* root = comparator.root();
  if (!root->Is(Opcode::kCompare) || comparator.parameter_count() < 2) return std::nullopt;
  const Instruction *a = comparator.parameter(0), *b = comparator.parameter(1);
  const ComparisonDirection direction = root->As<attr::Compare>().direction;
  if (root->operand(0) == a && root->operand(1) == b) return direction;
  if (root->operand(0) == b && root->operand(1) == a) return Mirrored(direction);
  return std::nullopt;
}

}  // namespace hlorun::hlo
