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

// Runs of `part` places, one in each of `trips` groups of `step`, from `first` on, that an update stores to.
struct Runs {
  size_t dimension = 0;
  int64_t first = 0, part = 0, step = 0, trips = 0;
};

// Of an update that stores to the same places of groups that its array consists of.
std::optional<Runs> RunsOf(const Instruction& update, TripForms& forms, int64_t trips) {
  const hlo::Dims &whole = update.shape().dimensions(), &part = update.operand(1)->shape().dimensions();
  if (update.operand_count() != 2 + static_cast<int64_t>(whole.size())) return std::nullopt;
  std::optional<Runs> runs;
  for (size_t d = 0; d < whole.size(); ++d) {
    if (part[d] == whole[d]) continue;
    const std::optional<TripForm> start = forms.Of(*update.operand(2 + static_cast<int64_t>(d)));
    if (runs || !start || start->step <= part[d] || start->first < 0 || start->first + part[d] > start->step ||
        whole[d] % start->step != 0 || trips * start->step > whole[d]) {
      return std::nullopt;
    }
    runs = Runs{d, start->first, part[d], start->step, trips};
  }
  if (runs && runs->part * trips * kLeastShareLeftOut < whole[runs->dimension]) return std::nullopt;
  return runs;
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

// An array that is `array` everywhere but at `runs`: what lies between them, and behind the last group that has one.
Instruction* CopyBetween(Instruction* array, const Runs& runs, hlo::Builder& build) {
  const hlo::Dims& whole = array->shape().dimensions();
  hlo::Dims groups = whole;
  groups[runs.dimension] = runs.step;
  groups.insert(groups.begin() + static_cast<int64_t>(runs.dimension), whole[runs.dimension] / runs.step);
  const size_t of_groups = runs.dimension, within = runs.dimension + 1;
  Instruction* const from = build.Reshape(array, groups);
  Instruction* copy = Uninitialized(build, from->shape());
  const auto add = [&](int64_t first_group, int64_t first, int64_t end) {
    if (first_group == groups[of_groups] || first == end) return;
    hlo::Dims starts(groups.size(), 0), limits = groups;
    starts[of_groups] = first_group;
    starts[within] = first;
    limits[within] = end;
    std::vector<Instruction*> at;
    for (const int64_t start : starts) at.push_back(build.ScalarConstant(hlo::ElementType::kS64, start));
    copy = build.DynamicUpdateSlice(copy, build.Slice(from, starts, limits, hlo::Dims(groups.size(), 1)), at);
  };
  add(0, 0, runs.first);
  add(0, runs.first + runs.part, runs.step);
  add(runs.trips, runs.first, runs.first + runs.part);
  return build.Reshape(copy, whole);
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
    if (update == nullptr) continue;
    hlo::Builder build(loop->parent(), start);
    build.before = init;
    if (CoversAll(*update, forms, *trips)) {
      init->ReplaceOperand(i, Uninitialized(build, start->shape()));
      loop->parent()->RemoveWithDeadOperands(start);
      changed = true;
    } else if (const std::optional<Runs> runs = RunsOf(*update, forms, *trips); runs && IsCopied(*start, module)) {
      init->ReplaceOperand(i, CopyBetween(start, *runs, build));
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
