#include "backends/opencl/codegen/row_shape.h"

#include <algorithm>
#include <unordered_set>

namespace hlorun::opencl {

RowShape RowShapeOf(const hlo::Instruction& reduce) {
  RowShape shape{reduce.operand(0)->shape().dimensions(), {}, {}, {}};
  std::vector<bool> reduced(shape.dimensions.size(), false);
  for (const int64_t d : reduce.dimensions()) reduced[static_cast<size_t>(d)] = true;
  size_t first = shape.dimensions.size();
  while (first > 0 && (reduced[first - 1] || shape.dimensions[first - 1] == 1)) --first;
  for (size_t d = 0; d < shape.dimensions.size(); ++d) {
    (!reduced[d] ? shape.kept : d < first ? shape.outer : shape.row).push_back(d);
  }
  return shape;
}

bool ReducesRows(const hlo::Instruction& reduce, const RowShape& rows) {
  const RowShape other = RowShapeOf(reduce);
  return other.dimensions == rows.dimensions && other.kept == rows.kept;
}

namespace {

// A result, or results together: each element is stored from its own place.
bool IsResult(const hlo::Instruction& value) {
  const auto& users = value.users();
  if (value.Is(hlo::Opcode::kTuple) || (value.Is(hlo::Opcode::kConcatenate) && users.empty())) return true;
  return (value.Is(hlo::Opcode::kReshape) || value.Is(hlo::Opcode::kBitcast)) &&
         std::all_of(users.begin(), users.end(), [](const auto* user) { return IsResult(*user); });
}

}  // namespace

bool IsReadInItsRow(const hlo::Instruction& value, const RowShape& rows) {
  std::vector<const hlo::Instruction*> work = {&value};
  std::unordered_set<const hlo::Instruction*> seen = {&value};
  while (!work.empty()) {
    const hlo::Instruction* at = work.back();
    work.pop_back();
    for (const hlo::Instruction* user : at->users()) {
      if (IsResult(*user)) continue;
      if (user->Is(hlo::Opcode::kReduce)) {
        if (!ReducesRows(*user, rows)) return false;
        continue;
      }
      const bool keeps_place = user->Has(hlo::kElementwise) || user->Is(hlo::Opcode::kClamp);
      if (!keeps_place || user->shape().dimensions() != rows.dimensions) return false;
      if (seen.insert(user).second) work.push_back(user);
    }
  }
  return true;
}

}  // namespace hlorun::opencl
