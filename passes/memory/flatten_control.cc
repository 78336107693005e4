#include "passes/memory/flatten_control.h"

#include <unordered_set>

#include "hlo/error.h"

namespace hlorun::passes {

// Loops of loops can name one computation exponentially often.
constexpr int64_t kMostInstructions = 2'000'000;

namespace {

// A scan becomes a loop in the end.
bool RunsItsCallees(const hlo::Instruction& instruction) {
  return instruction.Has(hlo::kControl) || instruction.Is(hlo::Opcode::kScan);
}

}  // namespace

bool FlattenControl::Run(hlo::Module& module, PassContext&) {
  bool changed = false;
  int64_t added = 0;
  std::unordered_set<const hlo::Computation*> called;
  // Callers before callees, so that the callees of a clone are seen with their new caller, too.
  std::vector<hlo::Computation*> work = {module.entry()};
  while (!work.empty()) {
    hlo::Computation* caller = work.back();
    work.pop_back();
    for (const auto& instruction : caller->instructions()) {
      if (!RunsItsCallees(*instruction)) continue;
      for (size_t i = 0; i < instruction->called_computations().size(); ++i) {
        const auto index = static_cast<int64_t>(i);
        hlo::Computation* callee = instruction->called(index);
        if (!called.insert(callee).second) {
          added += callee->instruction_count();
          if (added > kMostInstructions) {
            Fail(ErrorCode::kResourceExhausted,
                 "giving each caller of computation {} a copy makes the module larger than {} "
                 "instructions",
                 callee->name(), kMostInstructions);
          }
          hlo::Computation* clone = module.AddComputation(callee->name());
          hlo::InstructionMap map;
          clone->set_root(callee->CloneInto(clone, map));
          instruction->set_called(index, clone);
          callee = clone;
          called.insert(clone);
          changed = true;
        }
        work.push_back(callee);
      }
    }
  }
  return changed;
}

}  // namespace hlorun::passes
