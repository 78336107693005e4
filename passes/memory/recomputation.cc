#include "passes/memory/recomputation.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "hlo/cost_analysis.h"
#include "passes/fusion/hero.h"
#include "passes/fusion/updated_part.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Moments that are looked at before lives are found anew: each takes a look at every array.
constexpr int kMoments = 64;
// Kernels that are run again for one result: more than a few are slower than they look, and hold more operands.
constexpr int kLongestChain = 4;
// An operand this many times smaller than what is saved is kept rather than computed again.
constexpr int64_t kSmallOperand = 8;
// Of the bytes that are too many, the least part that is worth a kernel.
constexpr int64_t kLeastPart = 4096;
// What moves costs nothing; it goes before what costs a launch.
constexpr double kMoveUs = 0.01;

// The last time up to `time` at which an array is needed.
int64_t NeededUpTo(const LivingArray& array, int64_t time) {
  int64_t last = array.life.begin | 1;
  for (const Read& read : array.reads) {
    if (read.time > time) break;
    last = std::max(last, read.time);
  }
  return last;
}

std::vector<Read>::const_iterator FirstAfter(const LivingArray& array, int64_t time) {
  return std::upper_bound(array.reads.begin(), array.reads.end(), time,
                          [](int64_t t, const Read& read) { return t < read.time; });
}

}  // namespace

Recomputation::Recomputation(hlo::Module& module, const KernelModel& kernels, const TimeModel& times)
    : module_(module), kernels_(kernels), times_(times), lives_(module, kernels) {
  CountTrips(module);
}

void Recomputation::CountTrips(const hlo::Module& module) {
  std::vector<hlo::Computation*> callers_first = module.ControlComputations();
  std::reverse(callers_first.begin(), callers_first.end());
  trips_[module.entry()] = 1;
  for (const hlo::Computation* computation : callers_first) {
    const double here = trips_[computation];
    for (const auto& instruction : computation->instructions()) {
      if (!instruction->Has(hlo::kControl)) continue;
      double trips = here;
      if (instruction->Is(Opcode::kWhile))
        trips *= static_cast<double>(
            hlo::KnownTripCount(*instruction).value_or(static_cast<int64_t>(TimeModel::kAssumedTrips)));
      for (const hlo::Computation* callee : instruction->called_computations()) trips_[callee] += trips;
    }
  }
}

double Recomputation::Choice::Score(int64_t excess) const {
  return static_cast<double>(std::min(bytes, excess)) / (is_move ? kMoveUs : kMoveUs + microseconds);
}

std::vector<Recomputed> Recomputation::LowerTo(int64_t target) {
  done_.clear();
  for (int moment = 0; moment < kMoments && lives_.profile().most() > target; ++moment) {
    if (!LowerAt(lives_.profile().TimeOfMost(), target)) break;
  }
  RemoveDead();
  return std::move(done_);
}

bool Recomputation::LowerAt(int64_t time, int64_t target) {
  using Candidate = std::tuple<double, int64_t, size_t>;  // score, length of the gap, -number of the maker
  const std::vector<Instruction*> makers = MakersOver(time);
  const int64_t before = lives_.profile().At(time);
  const auto candidate = [&](const Choice& choice, size_t number) {
    return Candidate(choice.Score(lives_.profile().At(time) - target), choice.time - choice.since,
                     makers.size() - number);
  };
  const int64_t least = std::max<int64_t>(1, (before - target) / kLeastPart);
  std::set<Candidate> candidates;
  for (size_t i = 0; i < makers.size(); ++i) {
    const std::optional<Choice> choice = ChoiceFor(makers[i], time);
    if (choice && choice->bytes >= least) candidates.insert(candidate(*choice, i));
  }
  while (!candidates.empty() && lives_.profile().At(time) > target) {
    const Candidate best = *candidates.rbegin();
    candidates.erase(best);
    const size_t number = makers.size() - std::get<2>(best);
    // What was done since changes what it takes.
    const std::optional<Choice> choice = ChoiceFor(makers[number], time);
    if (!choice || choice->bytes < least) continue;
    const Candidate now = candidate(*choice, number);
    if (!candidates.empty() && now < *candidates.rbegin() && now < best) {
      candidates.insert(now);
      continue;
    }
    TryDo(*choice, time, target);
  }
  return lives_.profile().At(time) < before;
}

// Of arrays that live at `time`, are not read then, but later; in the order of the arrays.
std::vector<Instruction*> Recomputation::MakersOver(int64_t time) const {
  std::vector<Instruction*> makers;
  for (size_t i = 0; i < lives_.size(); ++i) {
    const LivingArray& array = lives_.at(static_cast<ArrayId>(i));
    if (array.maker == nullptr || array.escapes || array.life.begin >= time || array.life.end <= time) continue;
    if (!makers.empty() && makers.back() == array.maker) continue;  // another result of it
    makers.push_back(array.maker);
  }
  return makers;
}

bool Recomputation::IsRepeatable(const Instruction& instruction) const {
  if (MovesNoData(instruction) || instruction.Has(hlo::kAsync) || instruction.HasSideEffect()) return false;
  if (!instruction.control_predecessors().empty() || !instruction.control_successors().empty()) return false;
  if (kernels_.RunsAlone(instruction) || UpdateAtRoot(instruction) != nullptr) return false;
  switch (HeroOf(instruction).kind) {
    case KernelKind::kNone:
      if (!instruction.Is(Opcode::kCopy)) return false;
      break;
    case KernelKind::kScatter:
    case KernelKind::kRegion:
    case KernelKind::kBlocks:
    case KernelKind::kTiles:
    case KernelKind::kSideBySide:
    case KernelKind::kCollective:
    case KernelKind::kHost: return false;
    default: break;
  }
  const auto& results = lives_.ArraysOf(&instruction);
  for (int64_t i = 0; i < instruction.operand_count(); ++i) {
    const auto& arrays = lives_.ArraysOf(instruction.operand(i));
    if (arrays.size() != 1 || arrays[0] == kNoValue) return false;
    for (size_t leaf = 0; leaf < results.size(); ++leaf) {
      if (AliasesOperand(instruction, i, static_cast<int64_t>(leaf))) return false;
    }
  }
  return std::find(results.begin(), results.end(), kNoValue) == results.end();
}

std::optional<Recomputation::Choice> Recomputation::ChoiceFor(Instruction* maker, int64_t time) const {
  if (!IsRepeatable(*maker)) return std::nullopt;
  Choice choice;
  choice.maker = maker;
  choice.is_move = true;
  std::vector<Instruction*> readers;
  for (const ArrayId id : lives_.ArraysOf(maker)) {
    const LivingArray& array = lives_.at(id);
    if (array.escapes) choice.is_move = false;
    const auto next = FirstAfter(array, time);
    const int64_t since = NeededUpTo(array, time);
    const bool has_readers = next != array.reads.begin();
    const bool is_saved = !array.escapes && since < time && next != array.reads.end() && next->time > time + 1;
    if (has_readers || (!is_saved && next != array.reads.end())) choice.is_move = false;
    if (!is_saved) continue;
    choice.saved.push_back(id);
    choice.bytes += array.bytes;
    choice.since = std::max(choice.since, since);
    if (choice.time == 0 || next->time < choice.time) {
      choice.time = next->time;
      choice.before = next->reader;
    }
  }
  if (choice.saved.empty()) return std::nullopt;
  for (const ArrayId id : choice.saved) {
    for (auto read = FirstAfter(lives_.at(id), time); read != lives_.at(id).reads.end() && read->time == choice.time;
         ++read)
      readers.push_back(read->reader);
  }
  choice.before = FirstInFrontOf(choice.before, readers);
  if (!AddToChain(choice, maker, time, 0) || choice.bytes <= 0) return std::nullopt;
  const double trips = trips_.at(maker->parent());
  for (const Instruction* again : choice.chain) {
    if (!choice.is_move || again != maker) choice.microseconds += trips * times_.Launched(*again);
  }
  return choice;
}

// Whether what is made in front of `choice.before` finds the array alive.
bool Recomputation::IsThere(const LivingArray& array, const Choice& choice) const {
  if (array.is_given) return true;
  const auto made = in_front_of_.find(array.maker);
  if (array.maker != nullptr && made != in_front_of_.end() && array.life.begin == choice.time - 1)
    return StandsBefore(array.maker, choice.before);
  return array.life.begin < choice.time && array.life.end >= choice.time;
}

bool Recomputation::AddToChain(Choice& choice, Instruction* maker, int64_t time, int depth) const {
  for (const Instruction* operand : maker->operands()) {
    const ArrayId id = lives_.ArraysOf(operand)[0];
    const LivingArray& array = lives_.at(id);
    if (IsThere(array, choice)) continue;
    if (std::find(choice.chain.begin(), choice.chain.end(), array.maker) != choice.chain.end()) continue;
    if (std::find(choice.extended.begin(), choice.extended.end(), id) != choice.extended.end()) continue;
    if (array.life.begin >= choice.time - 1) return false;  // made in front of the same reader, but after this
    const bool may_extend = array.maker != nullptr && !array.escapes && !array.is_updated;
    const int64_t kept = array.life.end < time ? array.bytes : 0;
    const bool is_large = kept * kSmallOperand > choice.bytes;
    if ((!may_extend || is_large) && depth + 1 < kLongestChain && array.maker != nullptr &&
        array.maker->parent() == choice.maker->parent() && IsRepeatable(*array.maker)) {
      Choice with = choice;
      if (AddToChain(with, array.maker, time, depth + 1)) {
        choice = std::move(with);
        continue;
      }
    }
    if (!may_extend) return false;
    choice.extended.push_back(id);
    choice.bytes -= kept;
  }
  choice.chain.push_back(maker);
  return choice.chain.size() <= kLongestChain;
}

Recomputation::Changes Recomputation::ChangesOf(const Choice& choice, int64_t time) const {
  Changes changes;
  int64_t made = 0, scratch = 0;
  for (const Instruction* again : choice.chain) {
    for (const ArrayId id : lives_.ArraysOf(again)) made += lives_.at(id).bytes;
    scratch = std::max(scratch, kernels_.ScratchBytes(*again));
  }
  for (const ArrayId id : choice.saved) {
    const LivingArray& array = lives_.at(id);
    const int64_t begin = choice.is_move ? array.life.begin : NeededUpTo(array, time) + 1;
    changes.push_back({{begin, choice.time - 2}, -array.bytes});
    made -= array.bytes;
  }
  for (const ArrayId id : choice.extended) {
    const LivingArray& array = lives_.at(id);
    changes.push_back({{array.life.end + (array.ends_shared ? 0 : 1), choice.time}, array.bytes});
  }
  changes.push_back({{choice.time - 1, choice.time - 1}, made + scratch});
  return changes;
}

// Done unless another moment would need as much memory as this one did.
bool Recomputation::TryDo(const Choice& choice, int64_t time, int64_t target) {
  LiveProfile& profile = lives_.profile();
  const int64_t before = profile.At(time);
  const int64_t most = std::max(target, before - 1);
  const Changes changes = ChangesOf(choice, time);
  for (const auto& [range, bytes] : changes) profile.Add(range, bytes);
  const bool fits = profile.At(time) < before &&
                    std::all_of(
                        changes.begin(), changes.end(),
                        [&](const auto& change) { return change.second <= 0 || profile.MostIn(change.first) <= most; });
  if (!fits) {
    for (const auto& [range, bytes] : changes) profile.Add(range, -bytes);
    return false;
  }
  done_.push_back({choice.maker->name(), module_.SourceOf(*choice.maker), before - profile.At(time),
                   static_cast<int64_t>(choice.chain.size()), choice.microseconds, choice.is_move});
  Do(choice, time);
  return true;
}

void Recomputation::Do(const Choice& choice, int64_t time) {
  hlo::Computation* computation = choice.maker->parent();
  const auto base = in_front_of_.find(choice.before);
  Instruction* reader = base == in_front_of_.end() ? choice.before : base->second;
  hlo::InstructionMap images;
  for (const Instruction* again : choice.chain) {
    std::vector<Instruction*> operands;
    for (Instruction* operand : again->operands()) operands.push_back(Image(operand, choice.before, images));
    auto clone = again->CloneWithOperands(again->shape(), std::move(operands));
    clone->set_name(again->name() + ".again");
    Instruction* made = computation->Add(std::move(clone), choice.before);
    lives_.Insert(made, choice.time);
    images[again] = made;
    Instruction*& last = previous_[choice.before];
    previous_[made] = last;
    last = made;
    in_front_of_[made] = reader;
  }
  MoveReads(choice, time, images);
}

// Readers after `time` read what was made again.
void Recomputation::MoveReads(const Choice& choice, int64_t time, hlo::InstructionMap& images) {
  const std::vector<ArrayId> old = lives_.ArraysOf(choice.maker), made = lives_.ArraysOf(images.at(choice.maker));
  for (size_t leaf = 0; leaf < old.size(); ++leaf) {
    if (std::find(choice.saved.begin(), choice.saved.end(), old[leaf]) == choice.saved.end()) continue;
    LivingArray& first = lives_.at(old[leaf]);
    LivingArray& second = lives_.at(made[leaf]);
    const int64_t since = NeededUpTo(first, time);
    const auto later = FirstAfter(first, time);
    second.reads.assign(later, first.reads.cend());
    first.reads.erase(later, first.reads.cend());
    second.life.end = first.life.end;
    second.is_updated = first.is_updated;
    second.ends_shared = first.ends_shared;
    first.life.end = since;
    first.ends_shared = false;
    for (const Read& read : second.reads)
      read.reader->ReplaceOperand(read.operand, Image(read.reader->operand(read.operand), choice.before, images));
  }
}

// What stands for `operand` in front of `before`: itself, unless it was made again, or names what was.
Instruction* Recomputation::Image(Instruction* operand, Instruction* before, hlo::InstructionMap& images) {
  const auto known = images.find(operand);
  if (known != images.end()) return known->second;
  if (!OnlyNames(*operand)) return operand;
  Instruction* of = Image(operand->operand(0), before, images);
  if (of == operand->operand(0)) return operand;
  auto clone = operand->CloneWithOperands(operand->shape(), {of});
  Instruction* made = operand->parent()->Add(std::move(clone), before);
  const int64_t first = operand->Is(Opcode::kBitcast) ? 0 : FirstLeafOf(of->shape(), operand->tuple_index());
  const auto from = lives_.ArraysOf(of).begin() + first;
  lives_.Name(made, {from, from + hlo::LeafCount(operand->shape())});
  return images[operand] = made;
}

// Of `readers`, which run at the same time as `reader`: the first in the list.
Instruction* Recomputation::FirstInFrontOf(Instruction* reader, const std::vector<Instruction*>& readers) const {
  const auto base = in_front_of_.find(reader);
  Instruction* first = base == in_front_of_.end() ? reader : base->second;
  for (Instruction* at = first; at != nullptr;) {
    if (std::find(readers.begin(), readers.end(), at) != readers.end()) first = at;
    const auto before = previous_.find(at);
    at = before == previous_.end() ? nullptr : before->second;
  }
  return first;
}

bool Recomputation::StandsBefore(const Instruction* made, const Instruction* other) const {
  for (auto at = previous_.find(other); at != previous_.end() && at->second != nullptr;
       at = previous_.find(at->second)) {
    if (at->second == made) return true;
  }
  return false;
}

// Users before operands.
void Recomputation::RemoveDead() {
  for (hlo::Computation* computation : module_.ControlComputations()) {
    const std::vector<Instruction*> order = computation->PostOrder();
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      Instruction* instruction = *at;
      const bool is_dead = instruction->IsDead() && !instruction->Is(Opcode::kParameter);
      if (is_dead && !instruction->HasSideEffect()) computation->Remove(instruction);
    }
  }
}

}  // namespace hlorun::passes
