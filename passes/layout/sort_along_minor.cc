#include "passes/layout/sort_along_minor.h"

#include <algorithm>
#include <numeric>

#include "hlo/builder.h"
#include "hlo/module.h"

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Opcode;

namespace {

// What is smaller stays in a core's cache.
constexpr int64_t kSmallestSort = 1 << 16;

bool IsWanted(const Instruction& sort) {
  const hlo::Shape& shape = sort.operand(0)->shape();
  if (!shape.IsStatic() || shape.ElementCount() < kSmallestSort) return false;
  int64_t inside = 1;
  for (int64_t d = sort.As<hlo::attr::Sort>().dimension + 1; d < shape.rank(); ++d) inside *= shape.dimension(d);
  return inside > 1;
}

void Turn(Instruction* sort) {
  hlo::Builder build(sort->parent(), sort);
  build.before = sort;
  const auto& attributes = sort->As<hlo::attr::Sort>();
  const int64_t rank = sort->operand(0)->shape().rank();
  std::vector<int64_t> there(static_cast<size_t>(rank)), back(there.size());
  std::iota(there.begin(), there.end(), 0);
  std::rotate(there.begin() + attributes.dimension, there.begin() + attributes.dimension + 1, there.end());
  for (size_t i = 0; i < there.size(); ++i) back[static_cast<size_t>(there[i])] = static_cast<int64_t>(i);
  std::vector<Instruction*> operands;
  for (Instruction* operand : sort->operands()) operands.push_back(build.Transpose(operand, there));
  Instruction* turned =
      build.Make(Opcode::kSort, operands, hlo::attr::Sort{rank - 1, attributes.is_stable}, {sort->called()});
  if (turned->shape().IsArray()) return static_cast<void>(sort->parent()->Replace(sort, build.Transpose(turned, back)));
  std::vector<Instruction*> results;
  for (int64_t i = 0; i < sort->operand_count(); ++i) {
    results.push_back(build.Transpose(build.GetTupleElement(turned, i), back));
  }
  sort->parent()->Replace(sort, build.Tuple(results));
}

}  // namespace

bool SortAlongMinor::Run(hlo::Module& module, PassContext&) {
  bool changed = false;
  for (hlo::Computation* computation : module.PostOrder()) {
    for (Instruction* instruction : computation->PostOrder()) {
      if (!instruction->Is(Opcode::kSort) || !IsWanted(*instruction)) continue;
      Turn(instruction);
      changed = true;
    }
  }
  return changed;
}

}  // namespace hlorun::passes
