#include "passes/expand/custom_calls.h"

#include "hlo/builder.h"
#include "hlo/custom_calls/named_ops.h"

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Opcode;

bool ExpandCustomCalls::Run(hlo::Module& module, PassContext&) {
  bool changed = false;
  for (hlo::Computation* computation : module.PostOrder()) {
    for (Instruction* instruction : computation->PostOrder()) {
      if (!instruction->Is(Opcode::kCustomCall) || instruction->operand_count() != 1) continue;
      const auto named = hlo::OpcodeNamedBy(instruction->As<hlo::attr::CustomCall>().target);
      if (!named || !instruction->shape().SameAs(instruction->operand(0)->shape())) continue;
      hlo::Builder build(computation, instruction);
      build.before = instruction;
      computation->Replace(instruction, build.Unary(*named, instruction->operand(0)));
      changed = true;
    }
  }
  return changed;
}

}  // namespace hlorun::passes
