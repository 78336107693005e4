#include "backends/opencl/loop_pairs.h"

#include <algorithm>
#include <set>
#include <utility>

#include "backends/opencl/plan_slices.h"

namespace hlorun::opencl {
namespace {

// Twice the launches are made ready with a plan: not for less than this, copied in a trip.
constexpr int64_t kWorthwhileBytes = 4096;
constexpr size_t kMostThunks = 256;  // of a body

// What a trip reads as its state, and what it writes as the next one.
struct Exchange {
  Slice state, next;
};

bool IsSimple(const Thunk& thunk) {
  return std::holds_alternative<LaunchThunk>(thunk.work) || std::holds_alternative<CopyThunk>(thunk.work) ||
         std::holds_alternative<WriteThunk>(thunk.work);
}

class BodyPair {
 public:
  BodyPair(const std::vector<Thunk>& thunks, const std::vector<Slice>& carried) : thunks_(thunks), carried_(carried) {
    if (thunks.size() > kMostThunks || !std::all_of(thunks.begin(), thunks.end(), IsSimple)) return;
    for (size_t i = thunks.size(); i-- > 0;) {
      const auto* copy = std::get_if<CopyThunk>(&thunks[i].work);
      if (copy == nullptr || !MayExchange(i, *copy)) continue;
      exchanges_.push_back({copy->to, copy->from});
      copies_.insert(i);
      bytes_ += copy->to.bytes;
    }
  }

  bool IsWorthwhile() const { return bytes_ >= kWorthwhileBytes; }

  std::vector<Thunk> Thunks() const {
    std::vector<Thunk> both;
    for (const bool is_second : {false, true}) {
      for (size_t i = 0; i < thunks_.size(); ++i) {
        if (copies_.contains(i)) continue;
        both.push_back(thunks_[i]);
        if (is_second) ExchangeIn(both.back());
      }
    }
    return both;
  }

 private:
  // The copy is the last that a trip does with either place, the state is carried and what is copied is not, and each
  // trip writes it anew: what it holds when the next trip begins is the new state and nothing else.
  bool MayExchange(size_t number, const CopyThunk& copy) const {
    if (copy.from.bytes != copy.to.bytes || std::find(carried_.begin(), carried_.end(), copy.to) == carried_.end())
      return false;
    const auto meets = [](const Slice& a) { return [&a](const Slice& b) { return a.Overlaps(b); }; };
    if (std::any_of(carried_.begin(), carried_.end(), meets(copy.from)) || copy.from.Overlaps(copy.to)) return false;
    for (const Exchange& other : exchanges_) {
      for (const Slice& place : {other.state, other.next}) {
        if (place.Overlaps(copy.from) || place.Overlaps(copy.to)) return false;
      }
    }
    for (size_t i = 0; i < thunks_.size(); ++i) {
      for (const Slice& place : {copy.from, copy.to}) {
        if (i > number && Touches(thunks_[i], place)) return false;
        bool straddles = false;
        ForEachSlice(thunks_[i], [&](const Slice& s) { straddles |= s.Overlaps(place) && !Contains(place, s); });
        if (straddles) return false;
      }
    }
    return IsWrittenBefore(number, copy.from);
  }

  // Whether the thunks before that one write all of `place`, in whatever parts.
  bool IsWrittenBefore(size_t number, const Slice& place) const {
    std::vector<std::pair<int64_t, int64_t>> parts;  // from, to
    for (size_t i = 0; i < number; ++i) {
      ForEachWrite(thunks_[i], [&](const Slice& s) {
        if (s.Overlaps(place)) parts.emplace_back(s.offset, s.offset + s.bytes);
      });
    }
    std::sort(parts.begin(), parts.end());
    int64_t written_to = place.offset;
    for (const auto& [from, to] : parts) {
      if (from <= written_to) written_to = std::max(written_to, to);
    }
    return written_to >= place.offset + place.bytes;
  }

  void ExchangeIn(Thunk& thunk) const {
    if (auto* launch = std::get_if<LaunchThunk>(&thunk.work)) {
      for (Slice& argument : launch->arguments) argument = Other(argument);
    } else if (auto* copy = std::get_if<CopyThunk>(&thunk.work)) {
      *copy = {Other(copy->from), Other(copy->to)};
    } else if (auto* write = std::get_if<WriteThunk>(&thunk.work)) {
      write->to = Other(write->to);
    }
  }

  Slice Other(const Slice& slice) const {
    const auto moved = [&](const Slice& from, const Slice& to) {
      return Slice{to.allocation, to.offset + slice.offset - from.offset, slice.bytes};
    };
    for (const auto& [state, next] : exchanges_) {
      if (Contains(state, slice)) return moved(state, next);
      if (Contains(next, slice)) return moved(next, state);
    }
    return slice;
  }

  const std::vector<Thunk>& thunks_;
  const std::vector<Slice>& carried_;
  std::vector<Exchange> exchanges_;
  std::set<size_t> copies_;  // that they make superfluous
  int64_t bytes_ = 0;
};

void PairTripsIn(Sequence& sequence, const CarriedSlices& carried) {
  std::vector<Thunk> thunks;
  for (Thunk& thunk : sequence.thunks) {
    thunks.push_back(std::move(thunk));
    if (auto* choice = std::get_if<ConditionalThunk>(&thunks.back().work)) {
      for (const auto& branch : choice->branches) PairTripsIn(*branch, carried);
    }
    auto* loop = std::get_if<WhileThunk>(&thunks.back().work);
    if (loop == nullptr) continue;
    PairTripsIn(*loop->body, carried);
    const auto found = carried.find(loop->body.get());
    if (found == carried.end() || loop->trip_count < 2 || !loop->condition->thunks.empty()) continue;
    const BodyPair pair(loop->body->thunks, found->second);
    if (!pair.IsWorthwhile()) continue;
    std::vector<Thunk> trip = std::exchange(loop->body->thunks, pair.Thunks());
    const bool is_odd = loop->trip_count % 2 != 0;
    loop->trip_count /= 2;
    if (is_odd) std::move(trip.begin(), trip.end(), std::back_inserter(thunks));
  }
  sequence.thunks = std::move(thunks);
}

}  // namespace

void PairTrips(Plan& plan, const CarriedSlices& carried) { PairTripsIn(plan.entry, carried); }

}  // namespace hlorun::opencl
