#include "passes/fusion/stored_result.h"

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Opcode;

StoredResult StoredResultOf(const Instruction& root) {
  const StoredResult as_it_is{&root, nullptr};
  if (!root.Is(Opcode::kTranspose) || root.shape().rank() < 2 || !root.shape().IsStatic()) return as_it_is;
  const int64_t last = root.shape().rank() - 1, run = root.shape().dimension(last);
  if (root.dimensions().back() != last || run % kStoredRun != 0) return as_it_is;
  const Instruction* value = root.operand(0);
  while (value->Is(Opcode::kReshape) || value->Is(Opcode::kBitcast)) value = value->operand(0);
  const hlo::Shape& shape = value->shape();
  if (shape.rank() == 0 || !shape.IsStatic() || shape.dimension(shape.rank() - 1) % run != 0) return as_it_is;
  return {value, &root};
}

}  // namespace hlorun::passes
