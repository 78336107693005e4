#include "passes/spmd/leaf_nodes.h"

namespace hlorun::passes::spmd {

using hlo::Instruction;
using hlo::Opcode;

std::vector<int> OperandNodes(const LeafNodes& known, const Instruction& instruction) {
  std::vector<int> ids;
  for (const Instruction* operand : instruction.operands()) {
    const std::vector<int>& leaves = known.at(operand);
    ids.insert(ids.end(), leaves.begin(), leaves.end());
  }
  return ids;
}

std::optional<std::vector<int>> NodesHandedOn(const LeafNodes& known, const Instruction& instruction) {
  const int64_t count = hlo::LeafCount(instruction.shape());
  switch (instruction.opcode()) {
    case Opcode::kTuple:
    case Opcode::kOptimizationBarrier:
    case Opcode::kAddDependency: {
      std::vector<int> ids = OperandNodes(known, instruction);
      ids.resize(static_cast<size_t>(count));  // without the token that add-dependency waits for
      return ids;
    }
    case Opcode::kGetTupleElement: {
      const Instruction* tuple = instruction.operand(0);
      const hlo::ShapeIndex index = {instruction.tuple_index()};
      const auto first = known.at(tuple).begin() + hlo::LeafNumber(tuple->shape(), index);
      return std::vector<int>(first, first + count);
    }
    default: return std::nullopt;
  }
}

}  // namespace hlorun::passes::spmd
