#include "backends/opencl/codegen/written_out.h"

#include <algorithm>
#include <unordered_map>

#include "backends/opencl/codegen/lane_fold.h"
#include "hlo/computation.h"

namespace hlorun::opencl {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// The row's dimensions of more than one element, and which of them a broadcast follows.
struct Followed {
  std::vector<size_t> dimensions;
  std::vector<bool> is_followed;

  Followed(const Instruction& broadcast, const RowShape& rows) {
    const auto& from = broadcast.dimensions();
    for (const size_t d : rows.row) {
      if (rows.dimensions[d] == 1) continue;
      dimensions.push_back(d);
      is_followed.push_back(std::find(from.begin(), from.end(), static_cast<int64_t>(d)) != from.end());
    }
  }

  bool IsInPart() const {
    const auto count = std::count(is_followed.begin(), is_followed.end(), true);
    return count > 0 && count < std::ssize(is_followed);
  }

  // Elements at the row's end that all follow, or all do not: runs of them are loaded, or one number.
  int64_t Run(const RowShape& rows) const {
    int64_t run = 1;
    for (size_t i = dimensions.size(); i-- > 0 && is_followed[i] == is_followed.back();)
      run *= rows.dimensions[dimensions[i]];
    return run;
  }
};

class Reductions {
 public:
  bool AreNeededBy(const Instruction* value) {
    const auto [known, is_new] = known_.try_emplace(value, false);
    if (!is_new) return known->second;
    const auto& operands = value->operands();
    const bool needs = value->Is(Opcode::kReduce) || std::any_of(operands.begin(), operands.end(),
                                                                 [&](auto* operand) { return AreNeededBy(operand); });
    return known_[value] = needs;
  }

 private:
  std::unordered_map<const Instruction*, bool> known_;
};

}  // namespace

std::vector<const Instruction*> ValuesToWriteOut(const Instruction& instruction, const RowShape& rows, int64_t step) {
  std::vector<const Instruction*> values;
  if (!instruction.Is(Opcode::kFusion) || rows.outer_count() != 1) return values;
  Reductions reductions;
  for (const Instruction* member : instruction.called()->PostOrder()) {
    if (!member->Is(Opcode::kBroadcast) || member->shape().dimensions() != rows.dimensions) continue;
    const Followed followed(*member, rows);
    if (!followed.IsInPart() || followed.Run(rows) % step == 0 || reductions.AreNeededBy(member)) continue;
    if (!IsReadInItsRow(*member, rows)) continue;
    values.push_back(member);
  }
  return values;
}

void WriteOut(Emission& e, const Instruction& value, const RowShape& rows,
              const std::function<Indices(const Index& j)>& place_of, const ir::BufferRef& buffer, int lanes) {
  const Followed followed(value, rows);
  const size_t inner = followed.dimensions.back();
  const bool follows_inner = followed.is_followed.back();
  const int64_t length = rows.dimensions[inner];
  e.values().SerialLoop(rows.length() / length, [&](const Index& run) {
    const Index begin = e.math().Mul(run, length);
    Indices place = place_of(begin);
    // One number: what a vector writes beyond the run, the next one overwrites. Otherwise nothing beyond may be loaded.
    int64_t width = lanes;
    for (int64_t first = 0; first < length; first += width) {
      while (follows_inner && first + width > length) width /= 2;
      e.body().Add(LoopOfLanes(e, width, static_cast<int>(width), [&](const Index& l) {
        if (follows_inner) place[inner] = e.math().Add(l, first);
        const Value element = e.values().Get(e.frame(), value, place);
        e.body().Add(ir::Store(buffer, e.math().ToExpr(e.math().Add(e.math().Add(begin, first), l)), element.re));
      }));
    }
  });
}

}  // namespace hlorun::opencl
