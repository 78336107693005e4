#include "passes/fusion/stored_result.h"

#include <algorithm>

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Opcode;

bool StoredResult::IsOnTheWay(const Instruction* instruction) const {
  return std::find(way.begin(), way.end(), instruction) != way.end();
}

StoredResult StoredResultOf(const Instruction& root) {
  const StoredResult as_it_is{&root, {}};
  if (!root.Is(Opcode::kTranspose) || root.shape().rank() < 2 || !root.shape().IsStatic()) return as_it_is;
  const int64_t last = root.shape().rank() - 1, run = root.shape().dimension(last);
  if (root.dimensions().back() != last || run % kStoredRun != 0) return as_it_is;
  StoredResult elsewhere{root.operand(0), {&root}};
  const Instruction*& value = elsewhere.value;
  for (; value->Is(Opcode::kReshape) || value->Is(Opcode::kBitcast); value = value->operand(0))
    elsewhere.way.push_back(value);
  const hlo::Shape& shape = value->shape();
  if (shape.rank() == 0 || !shape.IsStatic() || shape.dimension(shape.rank() - 1) % run != 0) return as_it_is;
  return elsewhere;
}

}  // namespace hlorun::passes
