#include "passes/simplify/cse.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>

namespace hlorun::passes {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

namespace {

void Mix(size_t& hash, size_t value) { hash ^= value + 0x9e3779b97f4a7c15ull + (hash << 6) + (hash >> 2); }

size_t HashOf(const Instruction& instruction) {
  size_t hash = static_cast<size_t>(instruction.opcode());
  Mix(hash, static_cast<size_t>(instruction.shape().element_type()));
  for (int64_t d : instruction.shape().dimensions()) Mix(hash, static_cast<size_t>(d));
  for (const Instruction* operand : instruction.operands()) Mix(hash, std::hash<const void*>()(operand));
  for (const Computation* callee : instruction.called_computations()) Mix(hash, std::hash<const void*>()(callee));
  if (instruction.IsConstant()) Mix(hash, instruction.literal().Hash());
  if (instruction.Is(Opcode::kGetTupleElement)) Mix(hash, static_cast<size_t>(instruction.tuple_index()));
  return hash;
}

bool MayMerge(const Instruction& instruction) {
  return !instruction.Is(Opcode::kParameter) && !instruction.Has(hlo::kControl) && !instruction.Has(hlo::kAsync) &&
         instruction.control_predecessors().empty() && instruction.control_successors().empty() &&
         !instruction.shape().IsToken() && !instruction.HasSideEffect();
}

bool MergeInstructions(Computation* computation) {
  bool changed = false;
  std::unordered_multimap<size_t, Instruction*> seen;
  for (Instruction* instruction : computation->PostOrder()) {
    if (!MayMerge(*instruction)) continue;
    const size_t hash = HashOf(*instruction);
    const auto [first, last] = seen.equal_range(hash);
    const auto twin =
        std::find_if(first, last, [&](const auto& entry) { return entry.second->IsIdenticalTo(*instruction); });
    if (twin == last) {
      seen.emplace(hash, instruction);
      continue;
    }
    computation->Replace(instruction, twin->second);
    changed = true;
  }
  return changed;
}

bool SameComputation(const Computation& a, const Computation& b) {
  if (a.parameter_count() != b.parameter_count() || a.instruction_count() != b.instruction_count()) return false;
  std::unordered_map<const Instruction*, const Instruction*> twin;
  const std::vector<Instruction*> in_a = a.PostOrder();
  const std::vector<Instruction*> in_b = b.PostOrder();
  for (size_t i = 0; i < in_a.size(); ++i) {
    const Instruction& x = *in_a[i];
    const Instruction& y = *in_b[i];
    if (!x.Is(y.opcode()) || !x.shape().SameAs(y.shape()) || x.attributes() != y.attributes() ||
        x.operand_count() != y.operand_count() || x.called_computations() != y.called_computations() ||
        x.HasSideEffect()) {
      return false;
    }
    for (int64_t k = 0; k < x.operand_count(); ++k) {
      if (twin.at(x.operand(k)) != y.operand(k)) return false;
    }
    twin[&x] = &y;
  }
  return twin.at(a.root()) == b.root();
}

// Callees first, so that merged callees make their callers equal.
bool MergeComputations(hlo::Module& module) {
  // Executed computations keep one caller each; only what is called by reference may be shared.
  const std::vector<Computation*> executed = module.ControlComputations();
  const std::unordered_set<const Computation*> is_executed(executed.begin(), executed.end());
  constexpr int64_t kLargestReducer = 32;
  std::unordered_map<const Computation*, Computation*> merged;
  std::vector<Computation*> kept;
  for (Computation* computation : module.PostOrder()) {
    for (const auto& instruction : computation->instructions()) {
      for (size_t i = 0; i < instruction->called_computations().size(); ++i) {
        const auto it = merged.find(instruction->called(static_cast<int64_t>(i)));
        if (it != merged.end()) instruction->set_called(static_cast<int64_t>(i), it->second);
      }
    }
    if (is_executed.contains(computation) || computation->instruction_count() > kLargestReducer) continue;
    const auto twin = std::find_if(kept.begin(), kept.end(),
                                   [&](Computation* other) { return SameComputation(*other, *computation); });
    if (twin == kept.end()) {
      kept.push_back(computation);
    } else {
      merged[computation] = *twin;
    }
  }
  return !merged.empty();
}

}  // namespace

bool CommonSubexpressions::Run(hlo::Module& module, PassContext&) {
  bool changed = false;
  if (MergeComputations(module)) {
    changed = true;
    module.RemoveUnreachable();
  }
  for (Computation* computation : module.PostOrder()) changed |= MergeInstructions(computation);
  return changed;
}

}  // namespace hlorun::passes
