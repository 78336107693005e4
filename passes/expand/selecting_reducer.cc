#include "passes/expand/selecting_reducer.h"

#include <vector>

namespace hlorun::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Whether `predicate` only asks how pairs of parameters compare, at least one of them by order.
bool ComparesPairs(const Instruction* predicate, const Computation& reducer) {
  const int64_t count = reducer.parameter_count() / 2;
  bool orders = false;
  std::vector<const Instruction*> work = {predicate};
  while (!work.empty()) {
    const Instruction* x = work.back();
    work.pop_back();
    if (x->Is(Opcode::kAnd) || x->Is(Opcode::kOr) || x->Is(Opcode::kNot)) {
      work.insert(work.end(), x->operands().begin(), x->operands().end());
      continue;
    }
    if (!x->Is(Opcode::kCompare)) return false;
    const Instruction *a = x->operand(0), *b = x->operand(1);
    if (!a->Is(Opcode::kParameter) || !b->Is(Opcode::kParameter)) return false;
    if (a->parameter_number() % count != b->parameter_number() % count) return false;
    const hlo::ComparisonDirection direction = x->As<hlo::attr::Compare>().direction;
    orders |= a != b && direction != hlo::ComparisonDirection::kEq && direction != hlo::ComparisonDirection::kNe;
  }
  return orders;
}

}  // namespace

bool SelectsByOrder(const Computation& reducer) {
  const Instruction* root = reducer.root();
  if (!root->Is(Opcode::kTuple)) return false;
  const int64_t count = root->operand_count();
  for (int64_t i = 0; i < count; ++i) {
    const Instruction *select = root->operand(i), *x = reducer.parameter(i), *y = reducer.parameter(count + i);
    if (!select->Is(Opcode::kSelect) || !ComparesPairs(select->operand(0), reducer)) return false;
    const Instruction *a = select->operand(1), *b = select->operand(2);
    if (!(a == x && b == y) && !(a == y && b == x)) return false;
  }
  return true;
}

}  // namespace hlorun::passes
