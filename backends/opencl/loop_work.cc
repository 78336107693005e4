#include "backends/opencl/loop_work.h"

#include <algorithm>
#include <optional>

#include "backends/opencl/own_places.h"
#include "backends/opencl/plan_slices.h"

namespace hlorun::opencl {
namespace {

class LoopWork {
 public:
  explicit LoopWork(Plan& plan) : plan_(plan), places_(plan) {}

  void Move() {
    if (!places_.CanGive()) return;
    MoveIn(plan_.entry);
    places_.Account();
  }

 private:
  // Inner loops first: what leaves them may leave those around them, too.
  void MoveIn(Sequence& sequence) {
    std::vector<Thunk> thunks;
    for (Thunk& thunk : sequence.thunks) {
      if (auto* choice = std::get_if<ConditionalThunk>(&thunk.work)) {
        for (const auto& branch : choice->branches) MoveIn(*branch);
      } else if (auto* loop = std::get_if<WhileThunk>(&thunk.work)) {
        MoveIn(*loop->body);
        for (Thunk& moved : TakeOut(thunk, *loop->body)) thunks.push_back(std::move(moved));
      }
      thunks.push_back(std::move(thunk));
    }
    sequence.thunks = std::move(thunks);
  }

  std::vector<Thunk> TakeOut(const Thunk& loop, Sequence& body) {
    std::vector<Slice> written;
    ForEachThunk(loop, [&](const Thunk& thunk) { ForEachWrite(thunk, [&](const Slice& s) { written.push_back(s); }); });
    std::vector<Thunk> moved, left;
    for (size_t i = 0; i < body.thunks.size(); ++i) {
      const bool moves = IsSameInEveryTrip(body.thunks[i], written) && GiveOwnPlace(body, i);
      (moves ? moved : left).push_back(body.thunks[i]);
    }
    body.thunks = std::move(left);
    return moved;
  }

  bool IsSameInEveryTrip(const Thunk& thunk, const std::vector<Slice>& written) const {
    const auto* launch = std::get_if<LaunchThunk>(&thunk.work);
    if (launch == nullptr || thunk.role != StepRole::kPacking) return false;
    for (size_t i = 0; i < launch->arguments.size(); ++i) {
      const Slice& slice = launch->arguments[i];
      if (launch->written[i] && !places_.IsTemporary(slice)) return false;
      const auto overlaps = [&](const Slice& other) { return other.Overlaps(slice); };
      if (!launch->written[i] && std::any_of(written.begin(), written.end(), overlaps)) return false;
    }
    return true;
  }

  // False where something else of the instruction writes there as well.
  bool GiveOwnPlace(Sequence& body, size_t number) {
    auto& launch = std::get<LaunchThunk>(body.thunks[number].work);
    for (size_t i = 0; i < launch.arguments.size(); ++i) {
      if (!launch.written[i] || places_.IsOwn(launch.arguments[i])) continue;
      const std::optional<std::vector<Slice*>> readers = ReadersOf(body, number, launch.arguments[i]);
      if (!readers) return false;
      places_.Give(launch.arguments[i], *readers);
    }
    return true;
  }

  // Packing writes to the scratch of its own instruction. That is read by the instruction's last launch, and by those
  // of others behind it that want the same packed and so do not pack again, until something else is written there.
  static std::optional<std::vector<Slice*>> ReadersOf(Sequence& body, size_t number, const Slice& slice) {
    std::vector<Slice*> readers;
    bool is_there = false;
    for (size_t i = 0; i < body.thunks.size(); ++i) {
      Thunk& thunk = body.thunks[i];
      if (i == number) is_there = true;
      if (i == number || !Touches(thunk, slice)) continue;
      const bool is_own = thunk.label == body.thunks[number].label;
      auto* launch = std::get_if<LaunchThunk>(&thunk.work);
      if (is_own && (launch == nullptr || !is_there || Writes(*launch, slice))) return std::nullopt;
      if (!is_there) continue;
      if (launch == nullptr || Writes(*launch, slice)) {
        is_there = false;
        continue;
      }
      for (Slice& argument : launch->arguments) {
        if (!argument.Overlaps(slice)) continue;
        if (!Contains(slice, argument)) return std::nullopt;
        readers.push_back(&argument);
      }
    }
    return readers;
  }

  Plan& plan_;
  OwnPlaces places_;
};

}  // namespace

void MoveOutOfLoops(Plan& plan) { LoopWork(plan).Move(); }

}  // namespace hlorun::opencl
