#include "passes/simplify/markers.h"

#include "hlo/custom_calls/named_ops.h"

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Opcode;

namespace {

bool IsMarker(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kOptimizationBarrier:
    case Opcode::kDomain: return true;
    case Opcode::kCustomCall: {
      const std::string& target = instruction.As<hlo::attr::CustomCall>().target;
      // On a program that was partitioned by hand the two shapes differ; then there is work to do, and no marker.
      return hlo::IsMarkerTarget(target) && instruction.operand_count() == 1 &&
             instruction.shape().SameAs(instruction.operand(0)->shape());
    }
    default: return false;
  }
}

// A marker without a result, such as xla.sdy.ShardingGroup.
bool IsStatement(const Instruction& instruction) {
  return instruction.Is(Opcode::kCustomCall) && instruction.users().empty() && !instruction.IsRoot() &&
         hlo::IsMarkerTarget(instruction.As<hlo::attr::CustomCall>().target);
}

bool DropBufferOrder(const hlo::Computation& computation) {
  bool changed = false;
  for (const auto& instruction : computation.instructions()) {
    const bool has_edges = !instruction->control_predecessors().empty() || !instruction->control_successors().empty();
    if (!has_edges || instruction->HasSideEffect()) continue;
    instruction->DropControlEdges();
    changed = true;
  }
  return changed;
}

}  // namespace

bool RemoveMarkers::Run(hlo::Module& module, PassContext&) {
  bool changed = false;
  for (hlo::Computation* computation : module.PostOrder()) {
    changed |= DropBufferOrder(*computation);
    for (Instruction* instruction : computation->PostOrder()) {
      if (IsStatement(*instruction)) {
        computation->Remove(instruction);
      } else if (IsMarker(*instruction)) {
        computation->Replace(instruction, instruction->operand(0));
      } else {
        continue;
      }
      changed = true;
    }
  }
  return changed;
}

}  // namespace hlorun::passes
