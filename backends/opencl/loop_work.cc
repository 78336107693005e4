#include "backends/opencl/loop_work.h"

#include <algorithm>
#include <optional>

#include "backends/opencl/codegen/scratch.h"
#include "backends/opencl/plan_slices.h"

namespace hlorun::opencl {
namespace {

class LoopWork {
 public:
  explicit LoopWork(Plan& plan) : plan_(plan) {
    for (size_t a = 0; a < plan.allocations.size(); ++a) {
      if (plan.allocations[a].kind != passes::Allocation::Kind::kArena) continue;
      arena_ = static_cast<int32_t>(a);
      first_own_byte_ = plan.allocations[a].bytes;
    }
  }

  void Move() {
    if (arena_ < 0) return;
    MoveIn(plan_.entry);
    const int64_t bytes = Arena().bytes - first_own_byte_;
    plan_.memory.arena_bytes += bytes;
    plan_.memory.peak_bytes += bytes;
    plan_.memory.largest_live_bytes += bytes;
  }

 private:
  passes::Allocation& Arena() { return plan_.allocations[static_cast<size_t>(arena_)]; }

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
      if (launch->written[i] && slice.allocation != arena_) return false;
      const auto overlaps = [&](const Slice& other) { return other.Overlaps(slice); };
      if (!launch->written[i] && std::any_of(written.begin(), written.end(), overlaps)) return false;
    }
    return true;
  }

  // Packing writes to the scratch of its own instruction, whose last launch reads it. False where something else of the
  // instruction writes there as well.
  bool GiveOwnPlace(Sequence& body, size_t number) {
    auto& launch = std::get<LaunchThunk>(body.thunks[number].work);
    for (size_t i = 0; i < launch.arguments.size(); ++i) {
      if (!launch.written[i] || launch.arguments[i].offset >= first_own_byte_) continue;
      const std::optional<std::vector<Slice*>> readers = ReadersOf(body, number, launch.arguments[i]);
      if (!readers) return false;
      const int64_t place = AlignScratch(Arena().bytes);
      Arena().bytes = place + launch.arguments[i].bytes;
      for (Slice* reader : *readers) reader->offset += place - launch.arguments[i].offset;
      launch.arguments[i].offset = place;
    }
    return true;
  }

  static std::optional<std::vector<Slice*>> ReadersOf(Sequence& body, size_t number, const Slice& slice) {
    std::vector<Slice*> readers;
    for (size_t i = 0; i < body.thunks.size(); ++i) {
      if (i == number || body.thunks[i].label != body.thunks[number].label) continue;
      auto* launch = std::get_if<LaunchThunk>(&body.thunks[i].work);
      if (launch == nullptr) return std::nullopt;
      for (size_t a = 0; a < launch->arguments.size(); ++a) {
        Slice& argument = launch->arguments[a];
        if (!argument.Overlaps(slice)) continue;
        const bool is_inside =
            argument.offset >= slice.offset && argument.offset + argument.bytes <= slice.offset + slice.bytes;
        if (launch->written[a] || i < number || !is_inside) return std::nullopt;
        readers.push_back(&argument);
      }
    }
    return readers;
  }

  Plan& plan_;
  int32_t arena_ = -1;
  int64_t first_own_byte_ = 0;
};

}  // namespace

void MoveOutOfLoops(Plan& plan) { LoopWork(plan).Move(); }

}  // namespace hlorun::opencl
