#include "hlo/known_starts.h"

#include <algorithm>
#include <limits>

#include "hlo/literal.h"

namespace hlorun::hlo {

std::optional<Dims> KnownStarts(const Instruction& op) {
  const bool is_update = op.Is(Opcode::kDynamicUpdateSlice);
  const Dims& array = op.operand(0)->shape().dimensions();
  const Dims& slice = is_update ? op.operand(1)->shape().dimensions() : op.shape().dimensions();
  const int64_t first = is_update ? 2 : 1;
  if (op.operand_count() - first != static_cast<int64_t>(array.size())) return std::nullopt;  // one operand of all
  Dims starts;
  for (size_t d = 0; d < array.size(); ++d) {
    const Instruction* start = op.operand(first + static_cast<int64_t>(d));
    if (!start->IsConstant() || !start->shape().IsScalar() || start->As<attr::Constant>().elided) return std::nullopt;
    const int64_t value = start->literal().GetInt(0);
    // An unsigned start above the largest s64 clamps to the end, as any large one does.
    const bool wrapped = value < 0 && IsUnsigned(start->shape().element_type());
    starts.push_back(
        std::clamp<int64_t>(wrapped ? std::numeric_limits<int64_t>::max() : value, 0, array[d] - slice[d]));
  }
  return starts;
}

std::vector<Dims> OperandStarts(const Instruction& concatenate) {
  std::vector<Dims> starts;
  const int64_t along = concatenate.dimensions()[0];
  Dims at(static_cast<size_t>(concatenate.shape().rank()), 0);
  for (const Instruction* operand : concatenate.operands()) {
    starts.push_back(at);
    at[static_cast<size_t>(along)] += operand->shape().dimension(along);
  }
  return starts;
}

}  // namespace hlorun::hlo
