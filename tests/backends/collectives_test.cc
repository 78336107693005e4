// Collectives over the in-process transport: every operation, group shapes, odd sizes, failures.
#include <gtest/gtest.h>

#include <numeric>

#include "backends/collectives/await.h"
#include "backends/collectives/job.h"
#include "backends/collectives/tree_reduce.h"
#include "hlo/error.h"
#include "hlo/number_types.h"

namespace hlorun::collectives {
namespace {

using hlo::ElementType;
using hlo::Opcode;

template <typename T>
std::span<const std::byte> Bytes(const std::vector<T>& v) {
  return std::as_bytes(std::span(v));
}
template <typename T>
std::span<std::byte> Writable(std::vector<T>& v) {
  return std::as_writable_bytes(std::span(v));
}

std::vector<int64_t> Everyone(int64_t n) {
  std::vector<int64_t> group(static_cast<size_t>(n));
  std::iota(group.begin(), group.end(), 0);
  return group;
}

class CollectivesTest : public ::testing::TestWithParam<int64_t> {};

TEST_P(CollectivesTest, AllReduceSumsWholeArraysOfAnySize) {
  const int64_t n = GetParam();
  for (const int64_t count : {1, 3, 1000, 5000, 100003}) {
    const auto job = Job::InProcess(n);
    const auto results = job->OnEachLocalDevice<std::vector<int32_t>>([&](int64_t d, const auto& communicator) {
      std::vector<int32_t> in(static_cast<size_t>(count)), out(in.size());
      for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int32_t>(i) * 7 + static_cast<int32_t>(d);
      communicator->AllReduce(Everyone(n), Bytes(in), Writable(out), {Opcode::kAdd, ElementType::kS32, nullptr}, 0);
      return out;
    });
    for (const auto& result : results) {
      for (int64_t i = 0; i < count; ++i) ASSERT_EQ(result[static_cast<size_t>(i)], i * 7 * n + n * (n - 1) / 2);
    }
  }
}

TEST_P(CollectivesTest, AllReduceHasTheTreesBitsWhateverTheAlgorithm) {
  const int64_t n = GetParam();
  const size_t count = 4000;  // two-phase form
  std::vector<std::vector<float>> inputs;
  for (int64_t d = 0; d < n; ++d) {
    std::vector<float>& in = inputs.emplace_back(count);
    for (size_t i = 0; i < count; ++i) in[i] = 1.0f / static_cast<float>(i * 3 + static_cast<size_t>(d) * 11 + 1);
  }
  std::vector<const std::byte*> parts;
  for (const auto& in : inputs) parts.push_back(Bytes(in).data());
  std::vector<float> expected(count);
  const Reduction sum{Opcode::kAdd, ElementType::kF32, nullptr};
  TreeReduce(parts, Writable(expected).data(), static_cast<int64_t>(count), sum);
  const auto job = Job::InProcess(n);
  const auto results = job->OnEachLocalDevice<std::vector<float>>([&](int64_t d, const auto& communicator) {
    std::vector<float> out = inputs[static_cast<size_t>(d)];
    communicator->AllReduce(Everyone(n), Bytes(out), Writable(out), sum, 0);  // in place
    return out;
  });
  for (const auto& result : results) EXPECT_EQ(result, expected);
}

TEST_P(CollectivesTest, LongAllReducesGoInPieces) {
  const int64_t n = GetParam();
  for (const size_t count : {size_t{262'147}, size_t{1'500'001}}) {  // one piece a part, and several uneven ones
    const auto input = [](size_t i, int64_t d) {
      return 1.0f / static_cast<float>(i % 997 + static_cast<size_t>(d) * 11 + 1);
    };
    const Reduction sum{Opcode::kAdd, ElementType::kF32, nullptr};
    std::vector<std::vector<float>> inputs(static_cast<size_t>(n), std::vector<float>(count));
    std::vector<const std::byte*> parts;
    for (int64_t d = 0; d < n; ++d) {
      std::vector<float>& in = inputs[static_cast<size_t>(d)];
      for (size_t i = 0; i < count; ++i) in[i] = input(i, d);
      parts.push_back(Bytes(in).data());
    }
    std::vector<float> expected(count);
    TreeReduce(parts, Writable(expected).data(), static_cast<int64_t>(count), sum);
    const auto job = Job::InProcess(n);
    const auto right = job->OnEachLocalDevice<bool>([&](int64_t d, const auto& communicator) {
      std::vector<float> out = inputs[static_cast<size_t>(d)];
      communicator->AllReduce(Everyone(n), Bytes(out), Writable(out), sum, 0);  // in place
      std::vector<float> apart(count);
      communicator->AllReduce(Everyone(n), Bytes(inputs[static_cast<size_t>(d)]), Writable(apart), sum, 1);
      return out == expected && apart == expected;
    });
    EXPECT_EQ(right, std::vector<bool>(static_cast<size_t>(n), true));
  }
}

TEST_P(CollectivesTest, GatherScatterExchangeBroadcast) {
  const int64_t n = GetParam();
  const auto job = Job::InProcess(n);
  job->OnEachLocalDevice<int>([&](int64_t d, const auto& communicator) {
    const auto group = Everyone(n);
    const auto size = static_cast<size_t>(n);
    std::vector<int32_t> own(3, static_cast<int32_t>(d)), all(3 * size);
    communicator->AllGather(group, Bytes(own), Writable(all), 1);
    for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], static_cast<int32_t>(i / 3));

    std::vector<int32_t> blocks(size), exchanged(size);
    for (size_t i = 0; i < size; ++i) blocks[i] = static_cast<int32_t>(d * 100) + static_cast<int32_t>(i);
    communicator->AllToAll(group, Bytes(blocks), Writable(exchanged), 2);
    for (size_t i = 0; i < size; ++i) EXPECT_EQ(exchanged[i], static_cast<int32_t>(i) * 100 + d);

    std::vector<int32_t> mine(1);
    communicator->ReduceScatter(group, Bytes(blocks), Writable(mine), {Opcode::kMaximum, ElementType::kS32, nullptr},
                                3);
    EXPECT_EQ(mine[0], (n - 1) * 100 + d);

    std::vector<int32_t> everyones(3);
    communicator->Broadcast(group, Bytes(own), Writable(everyones), 4);
    EXPECT_EQ(everyones, std::vector<int32_t>(3, 0));
    return 0;
  });
}

INSTANTIATE_TEST_SUITE_P(Devices, CollectivesTest, ::testing::Values(1, 2, 3, 4, 8));

TEST(CollectivesTest, PermuteZeroesThoseWhoReceiveNothing) {
  const std::vector<std::pair<int64_t, int64_t>> pairs = {{0, 1}, {1, 2}, {3, 3}};
  const auto job = Job::InProcess(4);
  const auto results = job->OnEachLocalDevice<int32_t>([&](int64_t d, const auto& communicator) {
    std::vector<int32_t> value = {static_cast<int32_t>(d) + 10};
    communicator->Permute(pairs, Bytes(value), Writable(value), 0);
    return value[0];
  });
  EXPECT_EQ(results, (std::vector<int32_t>{0, 10, 11, 13}));
}

TEST(CollectivesTest, SubgroupsDoNotMix) {
  const auto job = Job::InProcess(4);
  const auto results = job->OnEachLocalDevice<int32_t>([&](int64_t d, const auto& communicator) {
    const std::vector<int64_t> group = d % 2 == 0 ? std::vector<int64_t>{2, 0} : std::vector<int64_t>{1, 3};
    std::vector<int32_t> in = {static_cast<int32_t>(d)}, out(2);
    communicator->AllGather(group, Bytes(in), Writable(out), 0);
    return out[0] * 10 + out[1];
  });
  EXPECT_EQ(results, (std::vector<int32_t>{20, 13, 20, 13}));
}

TEST(CollectivesTest, Bf16IsReducedInF32AndRoundedOnce) {
  // 256 + 1 + 1: in bf16 each step would round back to 256; in f32 the sum is 258, which bf16 holds.
  std::vector<hlo::bfloat16> a = {hlo::bfloat16(256.0f)}, b = {hlo::bfloat16(1.0f)}, c = b, out(1);
  TreeReduce({Bytes(a).data(), Bytes(b).data(), Bytes(c).data()}, Writable(out).data(), 1,
             {Opcode::kAdd, ElementType::kBF16, nullptr});
  EXPECT_EQ(static_cast<float>(out[0]), 258.0f);
}

TEST(CollectivesTest, IntegersWrapAtTheirWidth) {
  const auto reduced = [](Opcode opcode, ElementType type, int8_t x, int8_t y) {
    std::vector<int8_t> a = {x}, b = {y}, out(1);
    TreeReduce({Bytes(a).data(), Bytes(b).data()}, Writable(out).data(), 1, {opcode, type, nullptr});
    return static_cast<int>(out[0]);
  };
  EXPECT_EQ(reduced(Opcode::kAdd, ElementType::kS4, 7, 7), -2);
  EXPECT_EQ(reduced(Opcode::kMultiply, ElementType::kS4, -8, -8), 0);
  EXPECT_EQ(reduced(Opcode::kMaximum, ElementType::kS4, -8, 7), 7);
  EXPECT_EQ(reduced(Opcode::kAdd, ElementType::kU4, 15, 2), 1);
  EXPECT_EQ(reduced(Opcode::kMultiply, ElementType::kU2, 3, 3), 1);
  EXPECT_EQ(reduced(Opcode::kAdd, ElementType::kS2, 1, 1), -2);
  EXPECT_EQ(reduced(Opcode::kAdd, ElementType::kS8, 127, 1), -128);
}

// Of a job whose number of devices was chosen later, too.
TEST(CollectivesTest, WhatNobodySendsIsNotWaitedForForEver) {
  const auto job = Job::InProcess(1);
  job->DriveDevices(2);
  try {
    job->OnEachLocalDevice<int>([&](int64_t d, const auto& communicator) {
      Transport& transport = communicator->transport();
      std::vector<int32_t> in(1);
      Await(transport, transport.Receive(Writable(in), static_cast<int>(1 - d), 7));
      return 0;
    });
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("all 2 devices wait for each other"), std::string::npos) << e.message();
  }
}

TEST(CollectivesTest, AFailingDeviceEndsTheOthersWaits) {
  const auto job = Job::InProcess(3);
  const auto run = [&] {
    return job->OnEachLocalDevice<int>([&](int64_t d, const auto& communicator) {
      if (d == 1) Invalid("device 1 has had enough");
      std::vector<int32_t> in(1), out(3);
      communicator->AllGather(Everyone(3), Bytes(in), Writable(out), 0);
      return 0;
    });
  };
  try {
    run();
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "device 1 has had enough");
  }
}

TEST(CollectivesTest, AnOperationThatTheTypeLacksIsAnError) {
  std::vector<float> a(1), b(1), out(1);
  EXPECT_THROW(TreeReduce({Bytes(a).data(), Bytes(b).data()}, Writable(out).data(), 1,
                          {Opcode::kXor, ElementType::kF32, nullptr}),
               Error);
}

}  // namespace
}  // namespace hlorun::collectives
