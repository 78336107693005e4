// Messages that take their time, and waits that need not look before it is over.
#include "backends/collectives/timed_transport.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "backends/collectives/in_process.h"
#include "backends/collectives/wait.h"

namespace hlorun::collectives {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

class TimedTransportTest : public ::testing::Test {
 protected:
  std::shared_ptr<Transport> Endpoint(int rank) {
    return MakeTimedTransport(hub_->Endpoint(rank), {.latency = 0.03, .bandwidth = 1e6});
  }

  std::shared_ptr<InProcessHub> hub_ = std::make_shared<InProcessHub>(2);
  std::array<std::byte, 10'000> sent_{}, received_{};
};

TEST_F(TimedTransportTest, AReceiverKnowsTheTimeOfArrivalOnceTheMessageIsSent) {
  const auto sender = Endpoint(0), receiver = Endpoint(1);
  const auto receive = receiver->Receive(received_, 0, 1);
  EXPECT_FALSE(receive->Test());
  EXPECT_EQ(receive->NotBefore(), Clock::time_point());
  sent_[7] = std::byte{42};
  const auto before = Clock::now();
  const auto send = sender->Send(sent_, 1, 1);
  const auto after = Clock::now();
  EXPECT_FALSE(receive->Test());
  EXPECT_GE(receive->NotBefore(), before + milliseconds(40));
  EXPECT_LE(receive->NotBefore(), after + milliseconds(40) + std::chrono::microseconds(1));
  std::this_thread::sleep_until(receive->NotBefore());
  EXPECT_TRUE(receive->Test());
  EXPECT_EQ(received_[7], std::byte{42});
}

TEST_F(TimedTransportTest, ASenderIsDoneWhenTheLinkHasTakenItAll) {
  const auto sender = Endpoint(0), receiver = Endpoint(1);
  const auto before = Clock::now();
  const auto first = sender->Send(sent_, 1, 1), second = sender->Send(sent_, 1, 1);
  const auto receive = receiver->Receive(received_, 0, 1), next = receiver->Receive(received_, 0, 1);
  first->Test();
  second->Test();
  EXPECT_GE(first->NotBefore(), before + milliseconds(10));
  EXPECT_GE(second->NotBefore(), first->NotBefore() + milliseconds(9));
}

// Calls of a wait for something that is so late, after those in which it spins.
int Looks(milliseconds late, bool is_known) {
  int calls = 0;
  std::thread([&] {
    AskForShortSlices();
    const Clock::time_point end = Clock::now() + late;
    WaitUntil(
        [&] {
          ++calls;
          return Clock::now() >= end;
        },
        Patience::kSharedCore, [&] { return is_known ? end : Clock::time_point(); });
    EXPECT_GE(Clock::now(), end);
  }).join();
  return calls - 64;
}

TEST(WaitUntil, LooksOnceMoreWhereTheTimeIsKnown) {
  EXPECT_LE(Looks(milliseconds(15), true), 3);
  EXPECT_GT(Looks(milliseconds(100), false), 10);
}

TEST(WaitUntil, LooksNowAndThenHoweverLateItIsKnownToBe) { EXPECT_GE(Looks(milliseconds(200), true), 5); }

}  // namespace
}  // namespace hlorun::collectives
