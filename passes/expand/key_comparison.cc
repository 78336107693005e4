#include "passes/expand/key_comparison.h"

#include <algorithm>

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

bool IsScalarFunction(const Instruction& op) {
  return op.IsConstant() ? op.shape().ElementCount() == 1
                         : op.Has(hlo::kElementwise) || op.Is(Opcode::kClamp) || op.Is(Opcode::kBroadcast) ||
                               op.Is(Opcode::kReshape);
}

// The only parameter that `op` depends on, if there is just one and everything between is elementwise on scalars.
bool FindParameter(const Instruction& op, const Instruction*& parameter) {
  if (op.Is(Opcode::kParameter)) {
    if (parameter != nullptr && parameter != &op) return false;
    parameter = &op;
    return true;
  }
  if (!IsScalarFunction(op)) return false;
  return std::all_of(op.operands().begin(), op.operands().end(),
                     [&](const Instruction* o) { return FindParameter(*o, parameter); });
}

}  // namespace

bool SameFunction(const Instruction& a, const Instruction& b) {
  if (a.Is(Opcode::kParameter)) return b.Is(Opcode::kParameter) && a.shape() == b.shape();
  if (a.opcode() != b.opcode() || a.shape() != b.shape() || a.operand_count() != b.operand_count()) return false;
  if (a.attributes() != b.attributes()) return false;
  for (int64_t i = 0; i < a.operand_count(); ++i) {
    if (!SameFunction(*a.operand(i), *b.operand(i))) return false;
  }
  return true;
}

int64_t KeyComparison::operand() const { return parameter->parameter_number() / 2; }

std::optional<KeyComparison> KeyComparison::Of(const Instruction& compare) {
  if (!compare.Is(Opcode::kCompare) || hlo::IsComplex(compare.operand(0)->shape().element_type())) return std::nullopt;
  const Instruction &left_side = *compare.operand(0), &right_side = *compare.operand(1);
  const Instruction *left = nullptr, *right = nullptr;
  if (!FindParameter(left_side, left) || !FindParameter(right_side, right)) return std::nullopt;
  if (left == nullptr || right == nullptr || !SameFunction(left_side, right_side)) return std::nullopt;
  const int64_t l = left->parameter_number(), r = right->parameter_number();
  if (l / 2 != r / 2 || l == r) return std::nullopt;
  return KeyComparison{left, &left_side, l < r};
}

bool IsPartialOrder(const Instruction& compare) {
  return hlo::IsFloating(compare.operand(0)->shape().element_type()) &&
         compare.As<hlo::attr::Compare>().type != hlo::ComparisonType::kTotalOrder;
}

}  // namespace hlorun::passes
