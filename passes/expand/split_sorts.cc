#include "passes/expand/split_sorts.h"

#include <utility>
#include <vector>

#include "hlo/builder.h"
#include "passes/dynamic/signature.h"
#include "passes/expand/lexicographic_keys.h"

namespace hlorun::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Shorter rows are merged as quickly as they are sorted digit by digit.
constexpr int64_t kShortestRow = 8;

// The comparator of one of the keys.
Computation* ComparatorOf(const Instruction& key) {
  Computation* comparator = key.parent()->module()->AddComputation("by_key");
  hlo::InstructionMap images;
  key.parent()->CloneInto(comparator, images);
  comparator->set_root(images.at(&key));
  return comparator;
}

void Split(Instruction* sort, const std::vector<const Instruction*>& keys) {
  hlo::Builder build(sort->parent(), sort);
  build.before = sort;
  std::vector<Instruction*> operands = sort->operands();
  const int64_t dimension = sort->As<hlo::attr::Sort>().dimension;
  Instruction* sorted = nullptr;
  for (size_t k = keys.size(); k-- > 0;) {
    sorted = build.Make(Opcode::kSort, operands, hlo::attr::Sort{dimension, true}, {ComparatorOf(*keys[k])});
    if (k == 0) break;
    for (size_t i = 0; i < operands.size(); ++i) {
      operands[i] = sorted->shape().IsTuple() ? build.GetTupleElement(sorted, static_cast<int64_t>(i)) : sorted;
    }
  }
  sort->parent()->Replace(sort, sorted);
}

}  // namespace

bool SplitSorts::Run(hlo::Module& module, PassContext& context) {
  if (context.device.device_class != DeviceClass::kCpu || !SignatureOf(module).empty()) return false;
  bool changed = false;
  for (Computation* computation : module.PostOrder()) {
    for (Instruction* instruction : computation->PostOrder()) {
      if (!instruction->Is(Opcode::kSort)) continue;
      const hlo::Shape& shape = instruction->operand(0)->shape();
      if (shape.dimension(instruction->As<hlo::attr::Sort>().dimension) < kShortestRow) continue;
      const std::vector<const Instruction*> keys = LexicographicKeys(*instruction->called());
      if (keys.size() < 2) continue;
      Split(instruction, keys);
      changed = true;
    }
  }
  return changed;
}

}  // namespace hlorun::passes
