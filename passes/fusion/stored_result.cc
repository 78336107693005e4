#include "passes/fusion/stored_result.h"

#include <algorithm>

#include "hlo/known_starts.h"

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Opcode;

bool StoredResult::IsOnTheWay(const Instruction* instruction) const {
  return std::find(way.begin(), way.end(), instruction) != way.end();
}

StoredResult StoredResultOf(const Instruction& root) {
  if (RowsOfGroup(root) > 0) return {root.operand(0), {&root}};
  if (root.Is(Opcode::kDynamicUpdateSlice) && root.shape().IsStatic() && hlo::KnownStarts(root))
    return {root.operand(1), {&root}};
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

int64_t RowsOfGroup(const Instruction& op) {
  if (!op.Is(Opcode::kReduceWindow)) return 0;
  const hlo::Shape& shape = op.operand(0)->shape();
  const hlo::Window& window = op.As<hlo::attr::Windowed>().window;
  if (!shape.IsStatic() || shape.rank() < 2 || shape.ElementCount() == 0) return 0;
  const auto of_rows = static_cast<size_t>(shape.rank() - 2);
  for (size_t d = 0; d < window.size(); ++d) {
    if (d != of_rows && window[d] != hlo::WindowDimension{}) return 0;
  }
  const int64_t rows = window[of_rows].size, all = shape.dimension(shape.rank() - 2);
  hlo::WindowDimension groups;
  groups.size = groups.stride = rows;
  groups.padding_high = (rows - all % rows) % rows;
  return rows > 1 && window[of_rows] == groups ? rows : 0;
}

}  // namespace hlorun::passes
