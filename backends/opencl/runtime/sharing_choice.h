// Whether work of some microseconds is shared by a team's members or done by one is a question of the machine and of
// the minute: what one core has written takes 0.1 us to several to reach another, and where steps follow each other
// all of their arrays may have to. So a loop tries both, and keeps to what was faster.
#pragma once

#include <cstdint>
#include <mutex>

namespace hlorun::opencl {

// Of one loop, over all of its trips in all runs. Thread-safe.
class SharingChoice {
 public:
  // How a trip is to run, and whether its time says anything: the first ones after a change find their arrays in
  // another core's caches.
  struct Trip {
    bool alone = false;  // only long work is shared
    bool counts = false;
    int64_t round = 0;  // of trials
  };
  Trip Next();
  void Add(const Trip& trip, double microseconds);

 private:
  // Three trips one way, three the other, twice; then the faster one, until minutes may have changed.
  static constexpr int64_t kTripsOfTrial = 3, kTrials = 4, kTripsOfChoice = 500;
  static constexpr double kGain = 0.95;  // of the time, at most, where one member alone is to be faster

  // The mean of a way's trips, but for the slowest, which something else may have interrupted. (The fastest says little
  // of shared ones: now and then a helper comes too late to take anything.) Trips may fail, or end after the choice
  // where runs go side by side: of fewer than kFewest nothing is said.
  static constexpr int64_t kFewest = 3;
  struct Times {
    double sum = 0, slowest = 0;
    int64_t count = 0;
    double Usual() const { return (sum - slowest) / static_cast<double>(count - 1); }
  };

  std::mutex mutex_;
  int64_t trip_ = 0, round_ = 0;
  Times shared_, alone_;
  bool is_alone_ = false;
};

}  // namespace hlorun::opencl
