#include "passes/control/overwritten_carries.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <vector>

#include "hlo/module.h"
#include "passes/control/loop_carry.h"
#include "passes/control/trip_count.h"
#include "passes/control/trip_form.h"
#include "passes/dynamic/signature.h"
#include "passes/expand/uninitialized.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// What is smaller is stored in no time, or by the kernel that runs the loop; inside of another loop or a branch, by the
// kernel that runs all of that (fusion/regions.h), which takes nothing in that has no kernel.
constexpr int64_t kFewestBytes = 64 << 10, kFewestBytesInside = 1 << 20;

// What is left out of a copy has to pay for the launches that copy the rest.
constexpr int64_t kFewestBytesCopied = 1 << 20, kLeastShareLeftOut = 8;

// The update that makes the next of element `index`, of which nothing else reads anything; null where there is none.
const Instruction* OnlyUpdateOf(const Instruction& loop, int64_t index) {
  const Instruction* parameter = loop.while_body()->parameter(0);
  const Instruction* next = loop.while_body()->root();
  const Instruction* update = next->operand(index);
  if (!update->Is(Opcode::kDynamicUpdateSlice) || update->users().size() != 1 ||
      std::count(next->operands().begin(), next->operands().end(), update) != 1) {
    return nullptr;
  }
  const auto is_element = [&](const Instruction* x, const Instruction* of) {
    return x->Is(Opcode::kGetTupleElement) && x->operand(0) == of && x->tuple_index() == index;
  };
  if (!is_element(update->operand(0), parameter) ||
      std::count(update->operands().begin(), update->operands().end(), update->operand(0)) != 1) {
    return nullptr;
  }
  const auto reads = [&](const Instruction* of) {
    int64_t count = 0;
    for (const Instruction* x : of->users()) count += is_element(x, of) ? static_cast<int64_t>(x->users().size()) : 0;
    return count;
  };
  return reads(parameter) == 1 && reads(loop.while_condition()->parameter(0)) == 0 ? update : nullptr;
}

// Where an update stores to: all of its array, or a part that moves along one dimension from trip to trip.
struct Moving {
  bool is_whole = true;
  size_t dimension = 0;
  int64_t part = 0, whole = 0;  // of the dimension
  TripForm start;
};

// nullopt: along several dimensions, or nobody knows how.
std::optional<Moving> MovingOf(const Instruction& update, TripForms& forms) {
  const hlo::Dims &whole = update.shape().dimensions(), &part = update.operand(1)->shape().dimensions();
  if (update.operand_count() != 2 + static_cast<int64_t>(whole.size())) return std::nullopt;  // starts in one array
  Moving moving;
  for (size_t d = 0; d < whole.size(); ++d) {
    if (part[d] == whole[d]) continue;  // from its beginning, wherever it is said to start
    const std::optional<TripForm> start = forms.Of(*update.operand(2 + static_cast<int64_t>(d)));
    if (!moving.is_whole || !start) return std::nullopt;
    moving = {false, d, part[d], whole[d], *start};
  }
  return moving;
}

// Whether some trip stores to every place.
bool CoversAll(const Moving& moving, int64_t trips) {
  if (moving.is_whole) return true;
  const int64_t first = moving.start.first, last = first + moving.start.step * (trips - 1);
  return std::abs(moving.start.step) <= moving.part && std::min(first, last) <= 0 &&
         std::max(first, last) >= moving.whole - moving.part;
}

// Whether the array consists of groups of as many places as the part moves on by, each of which, but for the last ones,
// has one part, and these together are worth leaving out.
bool LeavesGaps(const Moving& moving, int64_t trips) {
  const auto [first, step] = moving.start;
  return !moving.is_whole && first >= 0 && step > moving.part && first + moving.part <= step &&
         moving.whole % step == 0 && trips * step <= moving.whole &&
         moving.part * trips * kLeastShareLeftOut >= moving.whole;
}

// A parameter that stays the caller's, which a loop may not write to.
bool IsCopied(const Instruction& start, const hlo::Module& module) {
  if (!start.Is(Opcode::kParameter) || start.parent() != module.entry() ||
      start.shape().ByteSize() < kFewestBytesCopied) {
    return false;
  }
  const auto is_it = [&](const auto& entry) { return entry.parameter == start.parameter_number(); };
  return std::none_of(module.input_output_alias.begin(), module.input_output_alias.end(), is_it) &&
         std::none_of(module.buffer_donors.begin(), module.buffer_donors.end(), is_it);
}

// An array that is `array` but for what an update that LeavesGaps stores: what lies in the gaps, and behind the last
// group that has a part.
Instruction* CopyOfGaps(Instruction* array, const Moving& moving, int64_t trips, hlo::Builder& build) {
  const auto [first, step] = moving.start;
  const size_t of_groups = moving.dimension, within = moving.dimension + 1;
  hlo::Dims groups = array->shape().dimensions();
  groups[moving.dimension] = step;
  groups.insert(groups.begin() + static_cast<int64_t>(of_groups), moving.whole / step);
  Instruction* const from = build.Reshape(array, groups);
  Instruction* copy = Uninitialized(build, from->shape());
  const auto add = [&](int64_t first_group, int64_t begin, int64_t end) {
    if (first_group == groups[of_groups] || begin == end) return;
    hlo::Dims starts(groups.size(), 0), limits = groups;
    starts[of_groups] = first_group;
    starts[within] = begin;
    limits[within] = end;
    copy = build.UpdateSlice(copy, build.Slice(from, starts, limits, hlo::Dims(groups.size(), 1)), starts);
  };
  add(0, 0, first);
  add(0, first + moving.part, step);
  add(trips, first, first + moving.part);
  return build.Reshape(copy, array->shape().dimensions());
}

bool InLoop(Instruction* loop, const hlo::Module& module, int64_t fewest_bytes) {
  Instruction* init = loop->operand(0);
  if (!IsTakenApart(*loop) || init->users().size() != 1 || init->IsRoot()) return false;
  const std::optional<int64_t> trips = TripCountOf(*loop);
  if (!trips || *trips < 1) return false;
  TripForms forms(*loop, *trips);
  bool changed = false;
  for (int64_t i = 0; i < init->operand_count(); ++i) {
    Instruction* start = init->operand(i);
    if (!start->shape().IsArray() || start->shape().ByteSize() < fewest_bytes || IsUninitialized(*start)) continue;
    const Instruction* update = OnlyUpdateOf(*loop, i);
    const std::optional<Moving> moving = update != nullptr ? MovingOf(*update, forms) : std::nullopt;
    if (!moving) continue;
    hlo::Builder build(loop->parent(), start);
    build.before = init;
    if (CoversAll(*moving, *trips)) {
      init->ReplaceOperand(i, Uninitialized(build, start->shape()));
      loop->parent()->RemoveWithDeadOperands(start);
      changed = true;
    } else if (LeavesGaps(*moving, *trips) && IsCopied(*start, module)) {
      init->ReplaceOperand(i, CopyOfGaps(start, *moving, *trips, build));
      changed = true;
    }
  }
  return changed;
}

}  // namespace

bool OverwrittenCarries::Run(hlo::Module& module, PassContext&) {
  // Loops may end at sizes.
  if (!SignatureOf(module).empty()) return false;
  bool changed = false;
  for (hlo::Computation* computation : module.ControlComputations()) {
    const int64_t fewest_bytes = computation == module.entry() ? kFewestBytes : kFewestBytesInside;
    for (Instruction* instruction : computation->PostOrder()) {
      if (instruction->Is(Opcode::kWhile)) changed |= InLoop(instruction, module, fewest_bytes);
    }
  }
  return changed;
}

}  // namespace hlorun::passes
