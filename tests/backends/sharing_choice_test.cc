#include "backends/opencl/runtime/sharing_choice.h"

#include <gtest/gtest.h>

#include <deque>

namespace hlorun::opencl {
namespace {

// So many trips, of which those that are shared take `shared` microseconds; how many were not.
int64_t TripsAlone(SharingChoice& choice, int64_t trips, double shared, double alone) {
  int64_t count = 0;
  for (int64_t i = 0; i < trips; ++i) {
    const SharingChoice::Trip trip = choice.Next();
    count += trip.alone ? 1 : 0;
    choice.Add(trip, trip.alone ? alone : shared);
  }
  return count;
}

TEST(SharingChoice, KeepsToWhatWasFaster) {
  SharingChoice fast_alone, fast_shared, equal;
  EXPECT_EQ(TripsAlone(fast_alone, 12, 10, 5), 6);
  EXPECT_EQ(TripsAlone(fast_alone, 500, 10, 5), 500);
  EXPECT_EQ(TripsAlone(fast_shared, 12, 5, 10), 6);
  EXPECT_EQ(TripsAlone(fast_shared, 500, 5, 10), 0);
  TripsAlone(equal, 12, 10, 9.8);
  EXPECT_EQ(TripsAlone(equal, 500, 10, 9.8), 0);
}

TEST(SharingChoice, TriesAgainLater) {
  SharingChoice choice;
  TripsAlone(choice, 512, 10, 5);
  EXPECT_EQ(TripsAlone(choice, 12, 10, 20), 6);
  EXPECT_EQ(TripsAlone(choice, 500, 10, 20), 0);
}

// The first trip after a change counts for nothing, nor does one that was slow by chance.
TEST(SharingChoice, FirstTripsAndSlowOnesDoNotCount) {
  SharingChoice choice;
  bool was_alone = true;
  for (int64_t i = 0; i < 12; ++i) {
    const SharingChoice::Trip trip = choice.Next();
    EXPECT_EQ(trip.counts, trip.alone == was_alone);
    choice.Add(trip, !trip.counts ? 1 : i == 4 ? 1000 : trip.alone ? 5 : 10);
    was_alone = trip.alone;
  }
  EXPECT_TRUE(choice.Next().alone);
}

// Runs side by side: the last trips of a trial are still under way when the next ones are asked for.
TEST(SharingChoice, TripsThatEndLateSayNothing) {
  for (const size_t runs : {2, 3, 4}) {
    SharingChoice choice;
    std::deque<SharingChoice::Trip> under_way;
    int64_t alone = 0;
    for (int64_t i = 0; i < 500; ++i) {
      under_way.push_back(choice.Next());
      if (i >= 16) alone += under_way.back().alone ? 1 : 0;
      if (under_way.size() < runs) continue;
      choice.Add(under_way.front(), under_way.front().alone ? 12 : 10);
      under_way.pop_front();
    }
    EXPECT_EQ(alone, 0) << runs;
  }
}

TEST(SharingChoice, TripsThatFailSayNothing) {
  SharingChoice choice;
  int64_t alone = 0;
  for (int64_t i = 0; i < 500; ++i) {
    const SharingChoice::Trip trip = choice.Next();
    if (i >= 12) alone += trip.alone ? 1 : 0;
    if (i != 4) choice.Add(trip, trip.alone ? 12 : 10);
  }
  EXPECT_EQ(alone, 0);
}

}  // namespace
}  // namespace hlorun::opencl
