#include "passes/simplify/dce.h"

namespace hlorun::passes {

bool RemoveDeadInstructions(hlo::Computation* computation) {
  bool changed = false;
  const std::vector<hlo::Instruction*> order = computation->PostOrder();
  // Users before operands, so that one walk removes whole chains.
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    hlo::Instruction* instruction = *it;
    if (!instruction->IsDead() || instruction->Is(hlo::Opcode::kParameter) || instruction->HasSideEffect()) continue;
    computation->Remove(instruction);
    changed = true;
  }
  return changed;
}

bool DeadCode::Run(hlo::Module& module, PassContext&) {
  bool changed = false;
  for (hlo::Computation* computation : module.PostOrder()) changed |= RemoveDeadInstructions(computation);
  return module.RemoveUnreachable() || changed;
}

}  // namespace hlorun::passes
