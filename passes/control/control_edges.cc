#include "passes/control/control_edges.h"

namespace hlorun::passes {

using hlo::Instruction;

bool DropControlEdges::Run(hlo::Module& module, PassContext&) {
  bool changed = false;
  for (hlo::Computation* computation : module.PostOrder()) {
    for (Instruction* instruction : computation->PostOrder()) {
      const bool has_edges = !instruction->control_predecessors().empty() || !instruction->control_successors().empty();
      if (!has_edges || instruction->HasSideEffect()) continue;
      for (Instruction* successor : instruction->control_successors()) {
        for (Instruction* predecessor : instruction->control_predecessors()) {
          successor->AddControlPredecessor(predecessor);
        }
      }
      instruction->DropControlEdges();
      changed = true;
    }
  }
  return changed;
}

}  // namespace hlorun::passes
