#include "passes/control/control_flow.h"

#include "hlo/builder.h"
#include "passes/control/loop_carry.h"
#include "passes/control/trip_count.h"
#include "passes/memory/flatten_control.h"
#include "passes/simplify/inline.h"

namespace hlorun::passes {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

namespace {

// The branch that a conditional with a constant selector takes; -1 when it is not constant.
int64_t KnownBranch(const Instruction& conditional) {
  const Instruction* selector = conditional.operand(0);
  if (!selector->IsConstant() || selector->As<hlo::attr::Constant>().elided) return -1;
  const auto branches = static_cast<int64_t>(conditional.called_computations().size());
  const int64_t value = selector->literal().GetInt(0);
  if (selector->shape().element_type() == hlo::ElementType::kPred) return value != 0 ? 0 : 1;
  return value >= 0 && value < branches ? value : branches - 1;  // out of range: the last
}

bool SimplifyConditional(Instruction* conditional) {
  int64_t branch = KnownBranch(*conditional);
  if (branch < 0 && conditional->called_computations().size() == 1) branch = 0;
  if (branch < 0) return false;
  InlineInstruction(conditional, conditional->called(branch), {conditional->operand(branch + 1)});
  return true;
}

bool SimplifyWhile(Instruction* loop) {
  const std::optional<int64_t> trips = TripCountOf(*loop);
  if (trips == 0) {
    loop->parent()->Replace(loop, loop->operand(0));
    return true;
  }
  if (trips == 1) {
    InlineInstruction(loop, loop->while_body(), {loop->operand(0)});
    return true;
  }
  bool changed = ForwardLoopInvariants(loop);
  changed |= ForwardPassedOn(loop);
  changed |= RemoveDeadCarries(loop) != nullptr;
  return changed;
}

}  // namespace

bool SimplifyControlFlow::Run(hlo::Module& module, PassContext& context) {
  // What is changed inside a body must be the business of one loop only.
  bool changed = FlattenControl().Run(module, context);
  for (Computation* computation : module.PostOrder()) {
    bool here = false;
    // Listed first: simplifying one removes other instructions, though no control flow that comes later.
    std::vector<Instruction*> control = computation->PostOrder();
    std::erase_if(control, [](const Instruction* i) { return !i->Is(Opcode::kConditional) && !i->Is(Opcode::kWhile); });
    for (Instruction* instruction : control) {
      here |= instruction->Is(Opcode::kWhile) ? SimplifyWhile(instruction) : SimplifyConditional(instruction);
    }
    if (here) computation->SetOrder(computation->PostOrder());
    changed |= here;
  }
  if (changed) module.RemoveUnreachable();
  return changed;
}

}  // namespace hlorun::passes
