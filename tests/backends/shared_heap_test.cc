// The heap that the ranks of a node share, and meeting in a window: in one process and between two.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <vector>

#include "backends/collectives/in_process.h"
#include "backends/collectives/node_window.h"
#include "backends/collectives/shared_heap.h"
#include "backends/collectives/stream_copy.h"
#include "backends/collectives/window_collectives.h"
#include "hlo/error.h"

namespace hlorun::collectives {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;

TEST(SharedHeapTest, BlocksAreZeroApartAndAligned) {
  const auto heap = SharedHeap::Create();
  if (heap == nullptr) GTEST_SKIP() << "no memfd here";
  std::vector<std::pair<std::byte*, size_t>> blocks;
  for (const size_t bytes : {size_t{1}, kPage, 3 * kPage + 1, kHugePage, 2 * kHugePage + 5 * kPage}) {
    std::byte* block = heap->Allocate(bytes);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % (bytes >= kHugePage ? kHugePage : kPage), 0u);
    for (size_t i = 0; i < bytes; i += 511) EXPECT_EQ(block[i], std::byte{0});
    std::memset(block, 0xff, bytes);
    for (const auto& [other, length] : blocks) EXPECT_TRUE(block + bytes <= other || other + length <= block);
    blocks.emplace_back(block, bytes);
  }
  for (const auto& [block, bytes] : blocks) heap->Free(block, bytes);
  std::byte* again = heap->Allocate(2 * kHugePage);
  EXPECT_EQ(again, blocks[0].first) << "freed neighbours are one block again";
  EXPECT_EQ(again[kHugePage], std::byte{0});
}

TEST(SharedHeapTest, NoRoomIsNoBlock) {
  const auto heap = SharedHeap::Create();
  if (heap == nullptr) GTEST_SKIP() << "no memfd here";
  EXPECT_EQ(heap->Allocate(static_cast<size_t>(heap->address().bytes)), nullptr);
  EXPECT_EQ(heap->OffsetOf(reinterpret_cast<const std::byte*>(&heap)), -1);
}

TEST(SharedHeapTest, OthersAreNotJoined) {
  const auto heap = SharedHeap::Create();
  if (heap == nullptr) GTEST_SKIP() << "no memfd here";
  HeapAddress wrong = heap->address();
  ++wrong.tag;
  const std::array<HeapAddress, 2> ranks{heap->address(), wrong};
  EXPECT_FALSE(heap->Join(ranks, 0));
}

// Two ranks: this process and a child.
class TwoRanks {
 public:
  static bool Possible() { return SharedHeap::Create() != nullptr && NodeWindow::Create(0, 2) != nullptr; }

  // Runs body(rank) in both; true when both returned true.
  template <typename Body>
  static bool Run(Body&& body) {
    int to_child[2], to_parent[2];
    if (pipe(to_child) != 0 || pipe(to_parent) != 0) return false;
    auto window = NodeWindow::Create(0, 2);
    const NodeWindow::Address address = window->address();
    const pid_t child = fork();
    if (child == 0) {
      bool good = false;
      try {
        auto own = NodeWindow::Open(address, 1, 2);
        good = own != nullptr && Join(*own, 1, to_child[0], to_parent[1]) && body(1, *own);
      } catch (const Error&) {
      }
      _exit(good ? 0 : 1);
    }
    const bool good = Join(*window, 0, to_parent[0], to_child[1]) && body(0, *window);
    int status = 0;
    waitpid(child, &status, 0);
    return good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

 private:
  static bool Join(NodeWindow& window, int rank, int from, int to) {
    auto heap = SharedHeap::Create();
    window.heap_addresses()[static_cast<size_t>(rank)] = heap->address();
    char token = 'x';
    const bool told = write(to, &token, 1) == 1 && read(from, &token, 1) == 1;
    if (!told || !heap->Join(window.heap_addresses(), rank)) return false;
    window.set_heap(heap);
    return write(to, &token, 1) == 1 && read(from, &token, 1) == 1;
  }
};

// All collectives of two ranks on operands where `place` puts them; floats whose sums show a wrong element.
bool AllCollectives(int rank, NodeWindow& window, size_t count, bool in_heap) {
  const auto hub = std::make_shared<InProcessHub>(1);
  const auto transport = hub->Endpoint(0);
  const std::array<int64_t, 2> ranks{0, 1};
  const WindowGroup group{window, *transport, ranks, rank};
  std::vector<float> own_in(count), own_out(2 * count);
  const auto place = [&](std::vector<float>& values) {
    const size_t bytes = values.size() * sizeof(float);
    std::byte* at = in_heap ? window.heap()->Allocate(bytes) : reinterpret_cast<std::byte*>(values.data());
    return std::span<std::byte>(at, bytes);
  };
  const std::span<std::byte> in_bytes = place(own_in), out_bytes = place(own_out);
  auto* in = reinterpret_cast<float*>(in_bytes.data());
  auto* out = reinterpret_cast<float*>(out_bytes.data());
  const auto value = [](int of, size_t i) { return static_cast<float>(i % 1000) + 0.25f * static_cast<float>(of); };
  const Reduction sum;
  bool good = true;
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < count; ++i) in[i] = value(rank, i);
    WindowAllReduce(group, in_bytes, out_bytes.first(in_bytes.size()), sum);
    for (size_t i = 0; i < count; ++i) good = good && out[i] == value(0, i) + value(1, i);
    WindowAllGather(group, in_bytes, out_bytes);
    for (size_t i = 0; i < 2 * count; ++i) good = good && out[i] == value(i < count ? 0 : 1, i % count);
    WindowReduceScatter(group, in_bytes, out_bytes.first(in_bytes.size() / 2), sum);
    const size_t half = count / 2, mine = half * static_cast<size_t>(rank);
    for (size_t i = 0; i < half; ++i) good = good && out[i] == value(0, mine + i) + value(1, mine + i);
    WindowAllToAll(group, in_bytes, out_bytes.first(in_bytes.size()));
    for (size_t i = 0; i < count; ++i) good = good && out[i] == value(i < half ? 0 : 1, mine + i % half);
    WindowPermute(group, 1 - rank, 1 - rank, in_bytes, out_bytes.first(in_bytes.size()));
    for (size_t i = 0; i < count; ++i) good = good && out[i] == value(1 - rank, i);
    WindowAllReduce(group, in_bytes, in_bytes, sum);  // in place
    for (size_t i = 0; i < count; ++i) good = good && in[i] == value(0, i) + value(1, i);
  }
  return good;
}

TEST(NodeWindowTest, CollectivesOfTwoProcesses) {
  if (!TwoRanks::Possible()) GTEST_SKIP() << "no memfd here";
  for (const size_t count : {2, 500, 5000, 100002, 400000}) {
    for (const bool in_heap : {false, true}) {
      EXPECT_TRUE(TwoRanks::Run([&](int rank, NodeWindow& window) {
        return AllCollectives(rank, window, count, in_heap);
      })) << count
          << " floats, " << (in_heap ? "in the heap" : "elsewhere");
    }
  }
}

TEST(NodeWindowTest, OneInTheHeapAndOneElsewhere) {
  if (!TwoRanks::Possible()) GTEST_SKIP() << "no memfd here";
  EXPECT_TRUE(
      TwoRanks::Run([&](int rank, NodeWindow& window) { return AllCollectives(rank, window, 30000, rank == 0); }));
}

TEST(NodeWindowTest, RanksThatCameForDifferentCollectivesAreTold) {
  if (!TwoRanks::Possible()) GTEST_SKIP() << "no memfd here";
  EXPECT_TRUE(TwoRanks::Run([&](int rank, NodeWindow& window) {
    const auto hub = std::make_shared<InProcessHub>(1);
    const auto transport = hub->Endpoint(0);
    const std::array<int64_t, 2> ranks{0, 1};
    std::vector<std::byte> in(rank == 0 ? 64 : 128), out(in.size());
    try {
      WindowAllReduce({window, *transport, ranks, rank}, in, out, Reduction{});
    } catch (const Error& error) {
      return std::string(error.what()).find("they do not run the same program") != std::string::npos;
    }
    return false;
  }));
}

TEST(StreamCopyTest, CopiesAnyLengthAndAlignment) {
  std::vector<std::byte> from(1000), to(1000);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i);
  for (const size_t begin : {0, 1, 17, 64}) {
    for (const size_t bytes : {0, 1, 63, 64, 65, 200, 777}) {
      std::fill(to.begin(), to.end(), std::byte{0xee});
      StreamCopy(to.data() + begin, from.data() + 3, bytes);
      FinishStreams();
      EXPECT_EQ(std::memcmp(to.data() + begin, from.data() + 3, bytes), 0);
      EXPECT_EQ(to[begin + bytes], std::byte{0xee});
      std::fill(to.begin(), to.end(), std::byte{0xee});
      BulkCopy(to.data() + begin, from.data() + 3, bytes);
      EXPECT_EQ(std::memcmp(to.data() + begin, from.data() + 3, bytes), 0);
      EXPECT_EQ(to[begin + bytes], std::byte{0xee});
    }
  }
}

}  // namespace
}  // namespace hlorun::collectives
