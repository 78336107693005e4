#include "passes/control/overwritten_carries.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "hlo/computation.h"
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

// Whether `update` stores to every place of its array in one of the trips.
bool CoversAll(const Instruction& update, TripForms& forms, int64_t trips) {
  const hlo::Dims &whole = update.shape().dimensions(), &part = update.operand(1)->shape().dimensions();
  if (update.operand_count() != 2 + static_cast<int64_t>(whole.size())) return false;  // starts in one array
  bool moves = false;
  for (size_t d = 0; d < whole.size(); ++d) {
    if (part[d] == whole[d]) continue;  // from its beginning, wherever it is said to start
    const std::optional<TripForm> start = forms.Of(*update.operand(2 + static_cast<int64_t>(d)));
    if (moves || !start || std::abs(start->step) > part[d]) return false;
    moves = true;
    const int64_t last = start->first + start->step * (trips - 1);
    if (std::min(start->first, last) > 0 || std::max(start->first, last) < whole[d] - part[d]) return false;
  }
  return true;
}

bool InLoop(Instruction* loop, int64_t fewest_bytes) {
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
    if (update == nullptr || !CoversAll(*update, forms, *trips)) continue;
    hlo::Builder build(loop->parent(), start);
    build.before = init;
    init->ReplaceOperand(i, Uninitialized(build, start->shape()));
    loop->parent()->RemoveWithDeadOperands(start);
    changed = true;
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
      if (instruction->Is(Opcode::kWhile)) changed |= InLoop(instruction, fewest_bytes);
    }
  }
  return changed;
}

}  // namespace hlorun::passes
