#include "backends/opencl/kept_work.h"

#include <algorithm>
#include <map>
#include <optional>

#include "backends/opencl/own_places.h"
#include "backends/opencl/plan_slices.h"

namespace hlorun::opencl {
namespace {

using Kind = passes::Allocation::Kind;

// Weights at Winograd's points are four times as large, in whole panels more; a large array made of a number is not
// kept.
constexpr int64_t kLargestGrowth = 8, kSmallBytes = int64_t{64} << 10;

class ConstantWork {
 public:
  ConstantWork(Plan& plan, const OverwrittenArguments& overwritten)
      : plan_(plan), overwritten_(overwritten), thunks_(plan.entry.thunks), places_(plan) {}

  void Keep() {
    if (!places_.CanGive()) return;
    std::map<size_t, Sequence*> kept;
    for (const auto& [number, overwritten] : overwritten_) {
      if (IsConstant(number) && GiveOwnPlaces(number)) kept[number] = &SequenceFor(number);
    }
    if (kept.empty()) return;
    std::vector<Thunk> left;
    for (size_t i = 0; i < thunks_.size(); ++i) {
      const auto found = kept.find(i);
      (found != kept.end() ? found->second->thunks : left).push_back(std::move(thunks_[i]));
    }
    thunks_ = std::move(left);
    places_.Account();
  }

 private:
  // Slices of what is moved, to be read at the place where it is kept.
  using Readers = std::vector<Slice*>;

  bool IsConstant(const Slice& slice) const {
    const passes::Allocation& allocation = plan_.allocations[static_cast<size_t>(slice.allocation)];
    return places_.IsOwn(slice) || allocation.kind == Kind::kConstant ||
           (allocation.kind == Kind::kArgument &&
            std::binary_search(plan_.constant_parameters.begin(), plan_.constant_parameters.end(), allocation.index));
  }

  bool IsConstant(size_t number) const {
    const auto& launch = std::get<LaunchThunk>(thunks_[number].work);
    int64_t read = 0, written = 0;
    for (size_t i = 0; i < launch.arguments.size(); ++i) {
      const Slice& slice = launch.arguments[i];
      const bool may_move = Overwrites(number, i) && places_.IsTemporary(slice);
      if (launch.written[i] ? !may_move : !IsConstant(slice)) return false;
      (launch.written[i] ? written : read) += slice.bytes;
    }
    return written > 0 && written <= kLargestGrowth * read + kSmallBytes;
  }

  // Of a launch that was given places.
  Sequence& SequenceFor(size_t number) {
    const auto& launch = std::get<LaunchThunk>(thunks_[number].work);
    bool of_parameters = false;
    for (size_t i = 0; i < launch.arguments.size(); ++i) {
      const Slice& slice = launch.arguments[i];
      const auto reads = [&](const Slice& made) { return made.Overlaps(slice); };
      of_parameters |=
          !launch.written[i] && (plan_.allocations[static_cast<size_t>(slice.allocation)].kind == Kind::kArgument ||
                                 std::any_of(of_parameters_.begin(), of_parameters_.end(), reads));
    }
    if (!of_parameters) return plan_.of_constants;
    for (size_t i = 0; i < launch.arguments.size(); ++i) {
      if (launch.written[i]) of_parameters_.push_back(launch.arguments[i]);
    }
    return plan_.once;
  }

  bool Overwrites(size_t number, size_t argument) const {
    const auto found = overwritten_.find(number);
    return found != overwritten_.end() && argument < found->second.size() && found->second[argument];
  }

  bool GiveOwnPlaces(size_t number) {
    auto& launch = std::get<LaunchThunk>(thunks_[number].work);
    std::vector<std::pair<Slice*, Readers>> places;
    for (size_t i = 0; i < launch.arguments.size(); ++i) {
      if (!launch.written[i]) continue;
      std::optional<Readers> readers = ReadersOf(number, launch.arguments[i]);
      if (!readers) return false;
      places.emplace_back(&launch.arguments[i], std::move(*readers));
    }
    for (const auto& [written, readers] : places) places_.Give(*written, readers);
    return true;
  }

  // All that read what thunk `number` writes to `slice`, until something else is written there; nullopt: something
  // reads more than that, or is no launch and no copy, or adds to it; or it stays in a result.
  std::optional<Readers> ReadersOf(size_t number, const Slice& slice) {
    if (IsSharedByInstruction(number, slice)) return std::nullopt;
    Readers readers;
    bool overwritten = false;
    for (size_t i = number + 1; i < thunks_.size() && !overwritten; ++i) {
      if (!Touches(thunks_[i], slice)) continue;
      if (auto* launch = std::get_if<LaunchThunk>(&thunks_[i].work)) {
        for (size_t a = 0; a < launch->arguments.size(); ++a) {
          Slice& argument = launch->arguments[a];
          if (!argument.Overlaps(slice)) continue;
          overwritten |= launch->written[a];
          if (launch->written[a] ? !Overwrites(i, a) : !Contains(slice, argument)) return std::nullopt;
          if (!launch->written[a]) readers.push_back(&argument);
        }
      } else if (auto* copy = std::get_if<CopyThunk>(&thunks_[i].work)) {
        overwritten = copy->to.Overlaps(slice);
        if (copy->from.Overlaps(slice) && !Contains(slice, copy->from)) return std::nullopt;
        if (copy->from.Overlaps(slice)) readers.push_back(&copy->from);
      } else {
        return std::nullopt;
      }
    }
    if (places_.IsInResult(slice) && !overwritten) return std::nullopt;
    return readers;
  }

  // Whether other launches of the same instruction write there too: each a part, or one after the other.
  bool IsSharedByInstruction(size_t number, const Slice& slice) const {
    const auto writes = [&](size_t i) {
      const auto* launch = std::get_if<LaunchThunk>(&thunks_[i].work);
      return launch != nullptr && Writes(*launch, slice);
    };
    const auto same = [&](size_t i) { return thunks_[i].label == thunks_[number].label; };
    for (size_t i = number; i-- > 0 && same(i);) {
      if (writes(i)) return true;
    }
    for (size_t i = number + 1; i < thunks_.size() && same(i); ++i) {
      if (writes(i)) return true;
    }
    return false;
  }

  Plan& plan_;
  const OverwrittenArguments& overwritten_;
  std::vector<Thunk>& thunks_;
  OwnPlaces places_;
  std::vector<Slice> of_parameters_;  // what is kept and made of parameters, directly or not
};

}  // namespace

void KeepConstantWork(Plan& plan, const OverwrittenArguments& overwritten) { ConstantWork(plan, overwritten).Keep(); }

}  // namespace hlorun::opencl
