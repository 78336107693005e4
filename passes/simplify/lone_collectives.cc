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
    case Opcode::kCollectiveBroadcast: break;
    default: return false;
  }
  if (!instruction.shape().IsTuple())
    return instruction.operand_count() == 1 && instruction.shape().SameAs(instruction.operand(0)->shape());
  const auto& leaves = instruction.shape().tuple_shapes();
  if (static_cast<int64_t>(leaves.size()) != instruction.operand_count()) return false;
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!leaves[i].SameAs(instruction.operand(static_cast<int64_t>(i))->shape())) return false;
  }
  return true;
}

// The rows that the lone device sends to itself: each piece a window of the input, moved to its place, over the output.
Instruction* RaggedRows(hlo::Builder& build, const Instruction& exchange) {
  Instruction *input = exchange.operand(0), *result = exchange.operand(1);
  const hlo::Dims& dimensions = result->shape().dimensions();
  const int64_t rows = dimensions[0];
  const auto entry = [&](int64_t operand, int64_t piece) {
    Instruction* one = build.Slice(exchange.operand(operand), {piece}, {piece + 1}, {1});
    return build.Convert(build.Reshape(one, {}), hlo::ElementType::kS32);
  };
  // Room for every window before and after the input; what comes from there is never taken.
  Instruction* roomy = build.Concatenate({result, input, result}, 0);
  std::vector<Instruction*> starts(dimensions.size(), build.ScalarConstant(hlo::ElementType::kS32, int64_t{0}));
  Instruction* row = build.Iota(hlo::Shape(hlo::ElementType::kS32, dimensions), 0);
  for (int64_t piece = 0; piece < exchange.operand(2)->shape().dimension(0); ++piece) {
    Instruction *from = entry(2, piece), *count = entry(3, piece), *to = entry(4, piece);
    Instruction* first = build.Binary(Opcode::kSubtract, from, to);
    starts[0] = build.Binary(Opcode::kAdd, first, build.ScalarConstant(hlo::ElementType::kS32, rows));
    Instruction* moved = build.DynamicSlice(roomy, starts, dimensions);
    Instruction* begin = build.Broadcast(to, dimensions, {});
    Instruction* end = build.Broadcast(build.Binary(Opcode::kAdd, to, count), dimensions, {});
    Instruction* taken = build.Binary(Opcode::kAnd, build.Compare(row, begin, hlo::ComparisonDirection::kGe),
                                      build.Compare(row, end, hlo::ComparisonDirection::kLt));
    result = build.Select(taken, moved, result);
  }
  return result;
}

// What the lone device gets; null where the op stays.
Instruction* LoneResult(hlo::Builder& build, Instruction* instruction) {
  if (GivesBackItsOperands(*instruction)) {
    return instruction->shape().IsTuple() ? build.Tuple(instruction->operands()) : instruction->operand(0);
  }
  if (instruction->Is(Opcode::kRaggedAllToAll)) return RaggedRows(build, *instruction);
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
