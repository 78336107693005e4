// The one wait loop: poll, spin briefly, yield, then sleep. On few cores a spinning thread costs kernels more than a
// late wake-up does (measured: 45 % of a kernel on two cores).
#pragma once

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <chrono>

namespace hlorun::collectives {

// kOwnCore: no kernel wants the core on which this thread waits, so it goes on yielding for longer before it sleeps.
enum class Patience { kSharedCore, kOwnCore };

// Calls `done()` until it is true.
template <typename Done>
void WaitUntil(Done&& done, Patience patience = Patience::kSharedCore) {
  using Clock = std::chrono::steady_clock;
  constexpr int kSpins = 64;
  constexpr int kYields = 4096;
  constexpr auto kLongestYield = std::chrono::milliseconds(20);
  constexpr long kLongestSleepNs = 200'000;
  // A yield that takes as long gave the core to a thread that computes, which keeps it for its slice of some
  // milliseconds; a sleeper gets the core when it wakes.
  constexpr auto kSlice = std::chrono::microseconds(300);
  Clock::time_point end{};
  for (int i = 0; !done(); ++i) {
    if (i < kSpins) continue;
    if (i == kSpins && patience == Patience::kOwnCore) end = Clock::now() + kLongestYield;
    if (i < kYields || (patience == Patience::kOwnCore && Clock::now() < end)) {
      const Clock::time_point before = Clock::now();
      sched_yield();
      if (patience == Patience::kSharedCore && Clock::now() - before > kSlice) i = std::max(i, kYields);
      continue;
    }
    const timespec pause{0, std::clamp(1000L * (i - kYields + 1), 1000L, kLongestSleepNs)};
    nanosleep(&pause, nullptr);
  }
}

}  // namespace hlorun::collectives
