#include "passes/fusion/kernel_places.h"

#include <algorithm>
#include <unordered_set>

#include "passes/fusion/hero.h"
#include "passes/memory/dataflow.h"

namespace hlorun::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

bool IsFence(const Instruction& i) {
  if (IsView(i)) return false;
  const KernelKind kind = HeroOf(i).kind;
  return i.HasSideEffect() || i.Has(hlo::kAsync) || kind == KernelKind::kCollective || kind == KernelKind::kHost;
}

// Calls visit(i) for what computes `value`, through views.
template <typename Visit>
void ForEachMaker(const Instruction* value, const Visit& visit) {
  if (!IsView(*value)) return visit(value);
  for (const Instruction* operand : value->operands()) ForEachMaker(operand, visit);
}

// For what reads `value`, likewise. The computation's result is read at its end, by nobody.
template <typename Visit>
void ForEachReader(const Instruction* value, const Visit& visit) {
  for (const Instruction* user : value->users()) {
    if (IsView(*user))
      ForEachReader(user, visit);
    else
      visit(user);
  }
}

// Lists instructions, each behind the views that it needs.
class Lister {
 public:
  void Add(Instruction* i) {
    std::vector<Instruction*> work = {i};
    while (!work.empty()) {
      Instruction* next = work.back();
      const size_t before = work.size();
      for (Instruction* operand : next->operands()) {
        if (IsView(*operand) && !listed_.contains(operand)) work.push_back(operand);
      }
      if (work.size() > before) continue;
      work.pop_back();
      if (listed_.insert(next).second) list_.push_back(next);
    }
  }
  const std::vector<Instruction*>& list() const { return list_; }

 private:
  std::vector<Instruction*> list_;
  std::unordered_set<const Instruction*> listed_;
};

}  // namespace

bool IsView(const Instruction& i) {
  return MovesNoData(i) && !i.Has(hlo::kControl) && !i.Is(Opcode::kParameter) && !i.IsConstant();
}

KernelPlaces::KernelPlaces(Computation& computation) : computation_(computation) {
  for (const auto& instruction : computation.instructions()) {
    // What is given is there from the beginning.
    const bool is_given = instruction->Is(Opcode::kParameter) || instruction->IsConstant();
    const int64_t place = is_given ? -1 : end();
    if (IsFence(*instruction)) fences_.push_back(place);
    places_[instruction.get()] = place;
    order_.push_back(instruction.get());
  }
}

KernelPlaces::Span KernelPlaces::SpanOf(const Instruction& kernel) const {
  Span span{-1, end()};
  const auto fence = std::lower_bound(fences_.begin(), fences_.end(), places_.at(&kernel));
  if (fence != fences_.end()) span.before = *fence;
  if (fence != fences_.begin()) span.after = *(fence - 1);
  for (const Instruction* operand : kernel.operands())
    ForEachMaker(operand, [&](const Instruction* maker) { span.after = std::max(span.after, places_.at(maker)); });
  ForEachReader(&kernel, [&](const Instruction* reader) { span.before = std::min(span.before, places_.at(reader)); });
  return span;
}

void KernelPlaces::Reorder() {
  std::vector<Instruction*> placed, views;
  for (const auto& instruction : computation_.instructions())
    (IsView(*instruction) ? views : placed).push_back(instruction.get());
  std::stable_sort(placed.begin(), placed.end(),
                   [&](const Instruction* a, const Instruction* b) { return places_.at(a) < places_.at(b); });
  Lister lister;
  for (Instruction* instruction : placed) lister.Add(instruction);
  for (Instruction* view : views) lister.Add(view);
  computation_.SetOrder(lister.list());
}

}  // namespace hlorun::passes
