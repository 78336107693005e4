#include "backends/opencl/runtime/sharing_choice.h"

#include <algorithm>

namespace hlorun::opencl {

SharingChoice::Trip SharingChoice::Next() {
  constexpr int64_t kTripsOfTrials = kTripsOfTrial * kTrials;
  const std::lock_guard lock(mutex_);
  if (trip_ == 0) {
    shared_ = alone_ = {};
    ++round_;
  }
  if (trip_ == kTripsOfTrials && std::min(shared_.count, alone_.count) >= kFewest)
    is_alone_ = alone_.Usual() < kGain * shared_.Usual();
  const bool is_trial = trip_ < kTripsOfTrials;
  const Trip trip{is_trial ? trip_ / kTripsOfTrial % 2 != 0 : is_alone_, is_trial && trip_ % kTripsOfTrial != 0,
                  round_};
  trip_ = (trip_ + 1) % (kTripsOfTrials + kTripsOfChoice);
  return trip;
}

void SharingChoice::Add(const Trip& trip, double microseconds) {
  if (!trip.counts) return;
  const std::lock_guard lock(mutex_);
  if (trip.round != round_) return;
  Times& times = trip.alone ? alone_ : shared_;
  times.sum += microseconds;
  ++times.count;
  times.slowest = std::max(times.slowest, microseconds);
}

}  // namespace hlorun::opencl
