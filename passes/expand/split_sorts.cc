#include "passes/expand/split_sorts.h"

#include <utility>
#include <vector>

#include "hlo/builder.h"
#include "passes/dynamic/signature.h"
#include "passes/expand/key_comparison.h"

namespace hlorun::passes {
namespace {

using hlo::ComparisonDirection;
using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Shorter rows are merged as quickly as they are sorted digit by digit.
constexpr int64_t kShortestRow = 8;

using Keys = std::vector<const Instruction*>;  // comparisons of the comparator, what decides first before others

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

// The comparator of one of the keys.
Computation* ComparatorOf(const Instruction& key) {
  Computation* comparator = key.parent()->module()->AddComputation("by_key");
  hlo::InstructionMap images;
  key.parent()->CloneInto(comparator, images);
  comparator->set_root(images.at(&key));
  return comparator;
}

void Split(Instruction* sort, const Keys& keys) {
  hlo::Builder build(sort->parent(), sort);
  build.before = sort;
  std::vector<Instruction*> operands = sort->operands();
  const int64_t dimension = sort->As<hlo::attr::Sort>().dimension;
  Instruction* sorted = nullptr;
  for (size_t k = keys.size(); k-- > 0;) {
    sorted = build.Make(Opcode::kSort, operands, hlo::attr::Sort{dimension, true}, {ComparatorOf(*keys[k])});
    if (k == 0) break;
    for (size_t i = 0; i < operands.size(); ++i) {
      operands[i] = sorted->shape().IsTuple() ? build.GetTupleElement(sorted, static_cast<int64_t>(i)) : sorted;
    }
  }
  sort->parent()->Replace(sort, sorted);
}

}  // namespace

bool SplitSorts::Run(hlo::Module& module, PassContext& context) {
  if (context.device.device_class != DeviceClass::kCpu || !SignatureOf(module).empty()) return false;
  bool changed = false;
  for (Computation* computation : module.PostOrder()) {
    for (Instruction* instruction : computation->PostOrder()) {
      if (!instruction->Is(Opcode::kSort)) continue;
      const hlo::Shape& shape = instruction->operand(0)->shape();
      if (shape.dimension(instruction->As<hlo::attr::Sort>().dimension) < kShortestRow) continue;
      Keys keys;
      if (!FindKeys(*instruction->called()->root(), keys) || keys.size() < 2) continue;
      Split(instruction, keys);
      changed = true;
    }
  }
  return changed;
}

}  // namespace hlorun::passes
