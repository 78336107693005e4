#include "passes/expand/selecting_reducer.h"

#include <array>
#include <vector>

#include "hlo/element_type.h"

namespace hlorun::passes {
namespace {

using hlo::ComparisonDirection;
using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

constexpr int64_t kArrays = 2;
constexpr int kNan = -1;  // among numbers 0, 1, 2
constexpr int kNumbers = 3;
using Element = std::array<int, kArrays>;

bool Holds(ComparisonDirection direction, int a, int b) {
  if (a == kNan || b == kNan) return direction == ComparisonDirection::kNe;
  switch (direction) {
    case ComparisonDirection::kEq: return a == b;
    case ComparisonDirection::kNe: return a != b;
    case ComparisonDirection::kLt: return a < b;
    case ComparisonDirection::kLe: return a <= b;
    case ComparisonDirection::kGt: return a > b;
    case ComparisonDirection::kGe: return a >= b;
  }
  return false;
}

// Parameters of the reducer, by number: the elements on the left, then those on the right.
int At(const Instruction& parameter, const Element& left, const Element& right) {
  const int64_t number = parameter.parameter_number();
  return number < kArrays ? left[static_cast<size_t>(number)] : right[static_cast<size_t>(number - kArrays)];
}

bool Holds(const Instruction& predicate, const Element& left, const Element& right) {
  const auto of = [&](int64_t operand) { return Holds(*predicate.operand(operand), left, right); };
  if (predicate.Is(Opcode::kAnd)) return of(0) && of(1);
  if (predicate.Is(Opcode::kOr)) return of(0) || of(1);
  if (predicate.Is(Opcode::kNot)) return !of(0);
  return Holds(predicate.As<hlo::attr::Compare>().direction, At(*predicate.operand(0), left, right),
               At(*predicate.operand(1), left, right));
}

Element Apply(const Computation& reducer, const Element& left, const Element& right) {
  Element chosen;
  for (size_t i = 0; i < chosen.size(); ++i) {
    const Instruction& select = *reducer.root()->operand(static_cast<int64_t>(i));
    const bool holds = Holds(*select.operand(0), left, right);
    chosen[i] = At(*select.operand(holds ? 1 : 2), left, right);
  }
  return chosen;
}

// Whether `predicate` only asks how pairs of parameters compare, by the usual order.
bool ComparesPairs(const Instruction& predicate) {
  if (predicate.Is(Opcode::kAnd) || predicate.Is(Opcode::kOr) || predicate.Is(Opcode::kNot)) {
    for (const Instruction* operand : predicate.operands()) {
      if (!ComparesPairs(*operand)) return false;
    }
    return true;
  }
  if (!predicate.Is(Opcode::kCompare)) return false;
  const Instruction *a = predicate.operand(0), *b = predicate.operand(1);
  return predicate.As<hlo::attr::Compare>().type != hlo::ComparisonType::kTotalOrder && a->Is(Opcode::kParameter) &&
         b->Is(Opcode::kParameter) && a->parameter_number() % kArrays == b->parameter_number() % kArrays;
}

bool SelectsPairs(const Computation& reducer) {
  const Instruction* root = reducer.root();
  if (!root->Is(Opcode::kTuple) || root->operand_count() != kArrays) return false;
  for (int64_t i = 0; i < kArrays; ++i) {
    const Instruction *select = root->operand(i), *x = reducer.parameter(i), *y = reducer.parameter(kArrays + i);
    if (!select->Is(Opcode::kSelect) || !ComparesPairs(*select->operand(0))) return false;
    const Instruction *a = select->operand(1), *b = select->operand(2);
    if (!(a == x && b == y) && !(a == y && b == x)) return false;
  }
  return true;
}

std::vector<Element> AllElements(const Computation& reducer) {
  const auto first = [&](int64_t i) {
    return hlo::IsFloating(reducer.parameter(i)->shape().element_type()) ? kNan : 0;
  };
  std::vector<Element> elements;
  for (int a = first(0); a < kNumbers; ++a) {
    for (int b = first(1); b < kNumbers; ++b) elements.push_back({a, b});
  }
  return elements;
}

}  // namespace

bool SelectsByOrder(const Computation& reducer) {
  if (!SelectsPairs(reducer)) return false;
  const std::vector<Element> elements = AllElements(reducer);
  for (const Element& a : elements) {
    for (const Element& b : elements) {
      const Element both = Apply(reducer, a, b);
      if (Apply(reducer, both, a) != both || Apply(reducer, both, both) != both) return false;
      for (const Element& c : elements) {
        if (Apply(reducer, both, c) != Apply(reducer, a, Apply(reducer, b, c))) return false;
      }
    }
  }
  return true;
}

}  // namespace hlorun::passes
