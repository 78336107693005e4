#include "passes/simplify/lone_collectives.h"

#include <algorithm>

#include "hlo/builder.h"
#include "hlo/module.h"

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Opcode;

namespace {

bool GivesBackItsOperands(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kAllReduce:
    case Opcode::kAllGather:
    case Opcode::kAllToAll:
    case Opcode::kReduceScatter:
    case Opcode::kCollectiveBroadcast:
      break;
    default:
      return false;
  }
  if (!instruction.shape().IsTuple()) return instruction.operand_count() == 1 && instruction.shape().SameAs(instruction.operand(0)->shape());
  const auto& leaves = instruction.shape().tuple_shapes();
  if (static_cast<int64_t>(leaves.size()) != instruction.operand_count()) return false;
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!leaves[i].SameAs(instruction.operand(static_cast<int64_t>(i))->shape())) return false;
  }
  return true;
}

// What the lone device gets; null where the op stays.
Instruction* LoneResult(hlo::Builder& build, Instruction* instruction) {
  if (GivesBackItsOperands(*instruction)) {
    return instruction->shape().IsTuple() ? build.Tuple(instruction->operands()) : instruction->operand(0);
  }
  const bool permutes = instruction->Is(Opcode::kCollectivePermute) && instruction->operand_count() == 1;
  if (!permutes || !instruction->shape().SameAs(instruction->operand(0)->shape())) return nullptr;
  const auto& pairs = instruction->As<hlo::attr::CollectivePermute>().source_target_pairs;
  const bool to_itself = std::any_of(pairs.begin(), pairs.end(), [](const auto& pair) { return pair.second == 0; });
  return to_itself ? instruction->operand(0) : build.Splat(instruction->shape(), int64_t{0});
}

}  // namespace

bool RemoveLoneCollectives::Run(hlo::Module& module, PassContext&) {
  if (module.replica_count * module.num_partitions != 1) return false;
  bool changed = false;
  for (hlo::Computation* computation : module.PostOrder()) {
    for (Instruction* instruction : computation->PostOrder()) {
      if (!instruction->Has(hlo::kCollective)) continue;
      hlo::Builder build(computation, instruction);
      build.before = instruction;
      Instruction* result = LoneResult(build, instruction);
      if (result == nullptr) continue;
      instruction->DropControlEdges();
      computation->Replace(instruction, result);
      changed = true;
    }
  }
  return changed;
}

}  // namespace hlorun::passes
