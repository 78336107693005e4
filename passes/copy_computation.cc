#include "passes/copy_computation.h"

namespace hlorun::passes {

hlo::Computation* CopyComputation(const hlo::Computation& original, hlo::Module& module, hlo::ComputationMap& copies) {
  if (const auto known = copies.find(&original); known != copies.end()) return known->second;
  for (const auto& instruction : original.instructions()) {
    for (const hlo::Computation* called : instruction->called_computations()) CopyComputation(*called, module, copies);
  }
  hlo::Computation* made = module.AddComputation(original.name());
  hlo::InstructionMap map;
  made->set_root(original.CloneInto(made, map, copies));
  return copies[&original] = made;
}

}  // namespace hlorun::passes
