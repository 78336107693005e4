#include "passes/expand/lexicographic_keys.h"

#include "passes/expand/key_comparison.h"

namespace hlorun::passes {
namespace {

using hlo::ComparisonDirection;
using hlo::Instruction;
using hlo::Opcode;

using Keys = std::vector<const Instruction*>;

ComparisonDirection DirectionOf(const Instruction& compare) { return compare.As<hlo::attr::Compare>().direction; }

// Whether `compare` puts elements in an order in which all have a place.
bool OrdersByKey(const Instruction& compare) {
  if (!compare.Is(Opcode::kCompare) || IsPartialOrder(compare) || !KeyComparison::Of(compare)) return false;
  return DirectionOf(compare) == ComparisonDirection::kLt || DirectionOf(compare) == ComparisonDirection::kGt;
}

// Whether `x` holds, or with kNe does not hold, where the key of `order` is the same on both sides.
bool IsTie(const Instruction& x, ComparisonDirection direction, const Instruction& order) {
  if (!x.Is(Opcode::kCompare) || DirectionOf(x) != direction || IsPartialOrder(x)) return false;
  const auto tie = KeyComparison::Of(x), key = KeyComparison::Of(order);
  return tie && key && tie->operand() == key->operand() && SameFunction(*tie->key, *key->key);
}

bool FindKeys(const Instruction& x, Keys& keys);

// `order`, and where its key is the same, `rest`.
bool AddKeys(const Instruction& order, const Instruction& rest, Keys& keys) {
  keys.push_back(&order);
  return FindKeys(rest, keys);
}

bool FindKeys(const Instruction& x, Keys& keys) {
  if (OrdersByKey(x)) {
    keys.push_back(&x);
    return true;
  }
  if (x.Is(Opcode::kSelect)) {
    const Instruction &asks = *x.operand(0), &on_true = *x.operand(1), &on_false = *x.operand(2);
    if (OrdersByKey(on_false) && IsTie(asks, ComparisonDirection::kEq, on_false))
      return AddKeys(on_false, on_true, keys);
    return OrdersByKey(on_true) && IsTie(asks, ComparisonDirection::kNe, on_true) && AddKeys(on_true, on_false, keys);
  }
  if (!x.Is(Opcode::kOr)) return false;
  for (const int64_t i : {0, 1}) {
    const Instruction &order = *x.operand(i), &both = *x.operand(1 - i);
    if (!OrdersByKey(order) || !both.Is(Opcode::kAnd)) continue;
    for (const int64_t j : {0, 1}) {
      if (IsTie(*both.operand(j), ComparisonDirection::kEq, order)) return AddKeys(order, *both.operand(1 - j), keys);
    }
  }
  return false;
}

}  // namespace

std::vector<const Instruction*> LexicographicKeys(const hlo::Computation& comparator) {
  Keys keys;
  if (!FindKeys(*comparator.root(), keys)) keys.clear();
  return keys;
}

}  // namespace hlorun::passes
