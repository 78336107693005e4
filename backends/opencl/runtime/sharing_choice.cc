#include "backends/opencl/runtime/sharing_choice.h"

#include <algorithm>

namespace hlorun::opencl {

SharingChoice::Trip SharingChoice::Next() {
  constexpr int64_t kTripsOfTrials = kTripsOfTrial * kTrials;
  const std::lock_guard lock(mutex_);
  if (trip_ == 0) std::fill_n(best_, 2, std::numeric_limits<double>::infinity());
  if (trip_ == kTripsOfTrials) alone_ = best_[1] < kGain * best_[0];
  const bool is_trial = trip_ < kTripsOfTrials;
  const Trip trip{is_trial ? trip_ / kTripsOfTrial % 2 != 0 : alone_, is_trial && trip_ % kTripsOfTrial != 0};
  trip_ = (trip_ + 1) % (kTripsOfTrials + kTripsOfChoice);
  return trip;
}

void SharingChoice::Add(const Trip& trip, double microseconds) {
  if (!trip.counts) return;
  const std::lock_guard lock(mutex_);
  double& best = best_[trip.alone ? 1 : 0];
  best = std::min(best, microseconds);
}

}  // namespace hlorun::opencl
