#include "passes/expand/unrounded.h"

#include <algorithm>

#include "hlo/builder.h"
#include "hlo/module.h"
#include "hlo/rounding.h"

namespace hlorun::passes {

using hlo::Computation;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;

namespace {

bool IsBf16(const Instruction* x) { return x->shape().IsArray() && x->shape().element_type() == ElementType::kBF16; }

bool Widens(const Instruction* user) {
  return user->Is(Opcode::kConvert) && user->shape().element_type() == ElementType::kF32;
}

bool MaySkip(const Instruction& op) {
  if (op.Is(Opcode::kReducePrecision)) return false;  // what it rounds to is what it is for
  if (op.shape().IsScalar()) return false;  // of a reducer that rounds on purpose; elsewhere nothing is gained
  if (!IsBf16(&op) || !op.Has(hlo::kElementwise) || hlo::NeverRounds(op.opcode()) || op.IsRoot()) return false;
  return !op.users().empty() && std::all_of(op.operands().begin(), op.operands().end(), IsBf16) &&
         std::all_of(op.users().begin(), op.users().end(), Widens);
}

void Skip(Computation* computation, Instruction* op) {
  hlo::Builder build(computation, op);
  build.before = op;
  std::vector<Instruction*> operands;
  for (Instruction* operand : op->operands()) operands.push_back(build.Convert(operand, ElementType::kF32));
  Instruction* wide = build.Make(op->opcode(), operands, op->attributes());
  const std::vector<Instruction*> users(op->users().begin(), op->users().end());
  for (Instruction* user : users) computation->Replace(user, wide);
  computation->Remove(op);
}

}  // namespace

bool SkipRounding::Run(hlo::Module& module, PassContext&) {
  bool changed = false;
  for (const auto& computation : module.computations()) {
    // All of them are found first: a convert that is made for one is not a reason for the next.
    std::vector<Instruction*> found;
    for (const auto& op : computation->instructions()) {
      if (MaySkip(*op)) found.push_back(op.get());
    }
    for (Instruction* op : found) Skip(computation.get(), op);
    changed |= !found.empty();
  }
  return changed;
}

}  // namespace hlorun::passes
