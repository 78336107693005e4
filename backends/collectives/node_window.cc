#include "backends/collectives/node_window.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>

#include "backends/collectives/wait.h"

namespace hlorun::collectives {
namespace {

constexpr int kSlots = 2;
// Polls of a flag before the first look at the other ranks' health; then each poll looks, so that all ranks see a silence
// at the same time.
constexpr int kPollsBeforeChecks = 256;

// Tells windows of one process apart, should a descriptor be used again.
int64_t NextTag() {
  static std::atomic<int64_t> next{1};
  return next++;
}

}  // namespace

// A cache line, written by one rank and read by another.
struct alignas(64) NodeWindow::Pair {
  std::atomic<uint64_t> posted{0};  // pieces that `from` has made for `to`
  std::atomic<uint32_t> slot{0};    // where the last of them lies
  alignas(64) std::atomic<uint64_t> consumed{0};  // pieces that `to` is done with
};

struct NodeWindow::Post {
  std::vector<std::pair<int64_t, uint64_t>> readers;  // rank, and the number of the piece for it
};

NodeWindow::NodeWindow(std::byte* base, size_t bytes, int descriptor, int rank, int ranks)
    : base_(base), bytes_(bytes), descriptor_(descriptor), rank_(rank), ranks_(ranks), posts_(kSlots),
      received_(static_cast<size_t>(ranks)) {}

NodeWindow::~NodeWindow() {
  munmap(base_, bytes_);
  if (descriptor_ >= 0) close(descriptor_);
}

size_t NodeWindow::BytesFor(int ranks) {
  const auto n = static_cast<size_t>(ranks);
  return sizeof(int64_t) * 8 + n * n * sizeof(Pair) + n * kSlots * static_cast<size_t>(kSlotBytes);
}

NodeWindow::Pair& NodeWindow::PairOf(int64_t from, int64_t to) const {
  return reinterpret_cast<Pair*>(base_ + sizeof(int64_t) * 8)[from * ranks_ + to];
}

std::byte* NodeWindow::SlotOf(int64_t rank, int slot) const {
  const auto n = static_cast<size_t>(ranks_);
  return base_ + sizeof(int64_t) * 8 + n * n * sizeof(Pair) +
         static_cast<size_t>(rank * kSlots + slot) * static_cast<size_t>(kSlotBytes);
}

NodeWindow::Address NodeWindow::Here() {
  Address address;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  file >> id;
  // Containers of one host have its boot id, but other processes behind the same numbers.
  char space[64] = "";
  const ssize_t length = readlink("/proc/self/ns/pid", space, sizeof space - 1);
  if (length > 0) id += space;
  const size_t hash = std::hash<std::string>()(id);
  std::snprintf(address.node, sizeof address.node, "%zx", hash);
  address.process = getpid();
  return address;
}

std::unique_ptr<NodeWindow> NodeWindow::Create(int rank, int ranks) {
  if (ranks > kMaxRanks) return nullptr;
  const int descriptor = memfd_create("hlorun-node-window", MFD_CLOEXEC);
  if (descriptor < 0) return nullptr;
  const size_t bytes = BytesFor(ranks);
  void* base = MAP_FAILED;
  if (ftruncate(descriptor, static_cast<off_t>(bytes)) == 0) {
    base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  }
  if (base == MAP_FAILED) {
    close(descriptor);
    return nullptr;
  }
  std::unique_ptr<NodeWindow> window(new NodeWindow(static_cast<std::byte*>(base), bytes, descriptor, rank, ranks));
  *reinterpret_cast<int64_t*>(base) = NextTag();
  return window;
}

NodeWindow::Address NodeWindow::address() const {
  Address address = Here();
  address.descriptor = descriptor_;
  address.tag = *reinterpret_cast<const int64_t*>(base_);
  return address;
}

std::unique_ptr<NodeWindow> NodeWindow::Open(const Address& address, int rank, int ranks) {
  const std::string path = "/proc/" + std::to_string(address.process) + "/fd/" + std::to_string(address.descriptor);
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  const size_t bytes = BytesFor(ranks);
  void* base = MAP_FAILED;
  if (lseek(descriptor, 0, SEEK_END) == static_cast<off_t>(bytes)) {
    base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  }
  close(descriptor);
  if (base == MAP_FAILED) return nullptr;
  if (*reinterpret_cast<const int64_t*>(base) != address.tag) {
    munmap(base, bytes);
    return nullptr;
  }
  return std::unique_ptr<NodeWindow>(new NodeWindow(static_cast<std::byte*>(base), bytes, -1, rank, ranks));
}

void NodeWindow::WaitFor(const std::function<bool()>& done, Transport& transport) {
  if (done()) return;
  const WaitScope scope(transport);
  int polls = 0;
  WaitUntil([&] {
    if (done()) return true;
    if (++polls > kPollsBeforeChecks) transport.Progress();
    return false;
  });
}

void NodeWindow::Exchange(std::span<const int64_t> group, int64_t steps, const Fill& fill, const Read& read,
                          Transport& transport) {
  std::vector<const std::byte*> slots(group.size());
  for (int64_t step = 0; step < steps; ++step) {
    const int mine = next_slot_;
    next_slot_ = (next_slot_ + 1) % kSlots;
    Post& post = posts_[static_cast<size_t>(mine)];
    // Whoever was to read what the slot holds has done so.
    for (const auto& [reader, number] : post.readers) {
      const Pair& pair = PairOf(rank_, reader);
      WaitFor([&] { return pair.consumed.load(std::memory_order_acquire) >= number; }, transport);
    }
    post.readers.clear();
    fill(SlotOf(rank_, mine), step);
    for (const int64_t peer : group) {
      if (peer == rank_) continue;
      Pair& pair = PairOf(rank_, peer);
      const uint64_t number = pair.posted.load(std::memory_order_relaxed) + 1;
      post.readers.emplace_back(peer, number);
      // Slots alternate, so that the reader tells by the number alone which of them a piece is in.
      pair.slot.store(static_cast<uint32_t>(pair.slot.load(std::memory_order_relaxed) & ~(1U << (number % 2))) |
                          static_cast<uint32_t>(mine) << (number % 2),
                      std::memory_order_relaxed);
      pair.posted.store(number, std::memory_order_release);
    }
    for (size_t p = 0; p < group.size(); ++p) {
      const int64_t peer = group[p];
      if (peer == rank_) {
        slots[p] = SlotOf(rank_, mine);
        continue;
      }
      const Pair& pair = PairOf(peer, rank_);
      const uint64_t number = ++received_[static_cast<size_t>(peer)];
      WaitFor([&] { return pair.posted.load(std::memory_order_acquire) >= number; }, transport);
      slots[p] = SlotOf(peer, static_cast<int>(pair.slot.load(std::memory_order_relaxed) >> (number % 2) & 1U));
    }
    read(slots, step);
    for (const int64_t peer : group) {
      if (peer != rank_) PairOf(peer, rank_).consumed.fetch_add(1, std::memory_order_release);
    }
  }
}

}  // namespace hlorun::collectives
