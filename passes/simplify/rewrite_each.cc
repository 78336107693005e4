#include "passes/simplify/rewrite_each.h"

namespace hlorun::passes {

bool RewriteEach(hlo::Module& module, const std::function<bool(hlo::Instruction*)>& rewrite) {
  bool changed = false;
  for (hlo::Computation* computation : module.PostOrder()) {
    bool here = false;
    for (hlo::Instruction* instruction : computation->PostOrder()) here |= rewrite(instruction);
    if (here) computation->SetOrder(computation->PostOrder());
    changed |= here;
  }
  if (changed) {
    module.is_scheduled = false;
    module.RemoveUnreachable();
  }
  return changed;
}

}  // namespace hlorun::passes
