// The one wait loop: poll, spin briefly, yield, then sleep. On few cores a thread that spins costs kernels more than
// one that wakes up late (measured: 45 % of a kernel on two cores), and one that yields still a fifth.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "backends/collectives/short_slices.h"

namespace hlorun::collectives {

// kOwnCore: no kernel wants the core on which this thread waits, so it goes on yielding for longer before it sleeps.
enum class Patience { kSharedCore, kOwnCore };

struct AnyTime {
  std::chrono::steady_clock::time_point operator()() const { return {}; }
};

// Calls `done()` until it is true. It is not before `not_before()`, asked after each call, so a sleeper sleeps until
// then.
template <typename Done, typename NotBefore = AnyTime>
void WaitUntil(Done&& done, Patience patience = Patience::kSharedCore, NotBefore&& not_before = {}) {
  using Clock = std::chrono::steady_clock;
  using std::chrono::microseconds;
  constexpr int kSpins = 64;
  // A thread with short slices does not yield: what it gets for that counts against it when it wakes up.
  const microseconds longest_yield(HasShortSlices() ? 0 : patience == Patience::kOwnCore ? 20'000 : 200);
  // A yield that takes as long gave the core to a thread that computes, which keeps it for its slice of some
  // milliseconds; a sleeper gets the core when it wakes.
  constexpr microseconds kSlice(300);
  const microseconds shortest_sleep(HasShortSlices() ? 100 : 20);
  constexpr microseconds kLongestSleep(200);
  // Who fails meanwhile is noticed this late.
  constexpr microseconds kLongestKnown(20'000);
  for (int i = 0; i < kSpins; ++i) {
    if (done()) return;
  }
  const Clock::time_point begin = Clock::now();
  for (Clock::time_point now = begin; now - begin < longest_yield;) {
    if (done()) return;
    sched_yield();
    const Clock::time_point before = std::exchange(now, Clock::now());
    if (patience == Patience::kSharedCore && now - before > kSlice) break;
  }
  while (!done()) {
    // Late by a part of what the wait has taken.
    const Clock::time_point now = Clock::now();
    const auto so_far = std::chrono::duration_cast<microseconds>(now - begin);
    const Clock::time_point look = now + std::clamp(so_far / 8, shortest_sleep, kLongestSleep);
    std::this_thread::sleep_until(std::clamp<Clock::time_point>(not_before(), look, now + kLongestKnown));
  }
}

}  // namespace hlorun::collectives
