// The one wait loop: poll, spin briefly, yield, then sleep. On few cores a spinning thread costs kernels more than a late
// wake-up does (measured: 45 % of a kernel on two cores).
#pragma once

#include <sched.h>
#include <time.h>

#include <algorithm>

namespace hlorun::collectives {

// Calls `done()` until it is true.
template <typename Done>
void WaitUntil(Done&& done) {
  constexpr int kSpins = 64;
  constexpr int kYields = 4096;
  constexpr long kLongestSleepNs = 200'000;
  for (int i = 0; !done(); ++i) {
    if (i < kSpins) continue;
    if (i < kYields) {
      sched_yield();
      continue;
    }
    const timespec pause{0, std::min(kLongestSleepNs, 1000L * (i - kYields + 1))};
    nanosleep(&pause, nullptr);
  }
}

}  // namespace hlorun::collectives
