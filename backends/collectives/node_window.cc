#include "backends/collectives/node_window.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>

#include "backends/collectives/wait.h"
#include "hlo/error.h"

namespace hlorun::collectives {
namespace {

constexpr int kSlots = 2;
// Polls of a line before the thread lets others run, where each rank has a core: some milliseconds. Whoever yields on a
// busy machine is back after a slice of the scheduler's, which is many times what a collective takes.
constexpr int kSpins = 100'000;

// Tells windows of one process apart, should a descriptor be used again.
int64_t NextTag() {
  static std::atomic<int64_t> next{1};
  return next++;
}

}  // namespace

// Written by one rank, read by another, in one cache miss. Two ranks have two in each direction: one that was met a
// second time has read what was written for the first.
struct alignas(64) NodeWindow::Line {
  std::atomic<uint64_t> number{0};  // of the meeting
  Note note;
};

struct NodeWindow::Post {
  std::vector<std::pair<int64_t, uint64_t>> readers;  // rank, and the number of the meeting
};

namespace {

// The window: a tag, the heaps' addresses, lines, how far each rank has read each other's slots, the slots.
struct Sections {
  size_t heaps, lines, read_up_to, slots, end;

  explicit Sections(int ranks) {
    constexpr size_t kLine = 64;
    const auto n = static_cast<size_t>(ranks);
    heaps = kLine;
    lines = (heaps + n * sizeof(HeapAddress) + kLine - 1) / kLine * kLine;
    read_up_to = lines + n * n * 2 * kLine;
    slots = read_up_to + n * n * kLine;
    end = slots + n * kSlots * static_cast<size_t>(NodeWindow::kSlotBytes);
  }
};

void Relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

}  // namespace

NodeWindow::NodeWindow(std::byte* base, size_t bytes, int descriptor, int rank, int ranks)
    : base_(base),
      bytes_(bytes),
      descriptor_(descriptor),
      rank_(rank),
      ranks_(ranks),
      has_own_core_(ranks <= sysconf(_SC_NPROCESSORS_ONLN)),
      posts_(kSlots),
      met_(static_cast<size_t>(ranks)) {
  static_assert(sizeof(Line) == 64);
}

NodeWindow::~NodeWindow() {
  munmap(base_, bytes_);
  if (descriptor_ >= 0) close(descriptor_);
}

std::span<HeapAddress> NodeWindow::heap_addresses() const {
  return {reinterpret_cast<HeapAddress*>(base_ + Sections(ranks_).heaps), static_cast<size_t>(ranks_)};
}

NodeWindow::Line& NodeWindow::LineOf(int64_t from, int64_t to, uint64_t number) const {
  auto* lines = reinterpret_cast<Line*>(base_ + Sections(ranks_).lines);
  return lines[(from * ranks_ + to) * 2 + static_cast<int64_t>(number % 2)];
}

std::atomic<uint64_t>& NodeWindow::ReadUpTo(int64_t reader, int64_t writer) const {
  return *reinterpret_cast<std::atomic<uint64_t>*>(base_ + Sections(ranks_).read_up_to +
                                                   static_cast<size_t>(reader * ranks_ + writer) * 64);
}

std::byte* NodeWindow::SlotOf(int64_t rank, int slot) const {
  return base_ + Sections(ranks_).slots + static_cast<size_t>(rank * kSlots + slot) * static_cast<size_t>(kSlotBytes);
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
  const size_t bytes = Sections(ranks).end;
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
  const size_t bytes = Sections(ranks).end;
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

template <typename Done>
void NodeWindow::Wait(Transport& transport, Done&& done) const {
  for (int i = has_own_core_ ? kSpins : 1; i > 0; --i) {
    if (done()) return;
    Relax();
  }
  const WaitScope scope(transport);
  WaitUntil(
      [&] {
        if (done()) return true;
        transport.Progress();
        return false;
      },
      has_own_core_ ? Patience::kOwnCore : Patience::kSharedCore);
}

void NodeWindow::Meet(std::span<const int64_t> ranks, const Note& note, std::span<Note> notes, Transport& transport) {
  for (const int64_t peer : ranks) {
    if (peer == rank_) continue;
    const uint64_t number = ++met_[static_cast<size_t>(peer)];
    Line& line = LineOf(rank_, peer, number);
    line.note = note;
    line.number.store(number, std::memory_order_release);
  }
  for (size_t p = 0; p < ranks.size(); ++p) {
    const int64_t peer = ranks[p];
    if (peer == rank_) {
      notes[p] = note;
      continue;
    }
    const uint64_t number = met_[static_cast<size_t>(peer)];
    const Line& line = LineOf(peer, rank_, number);
    Wait(transport, [&] { return line.number.load(std::memory_order_acquire) == number; });
    notes[p] = line.note;
    if (notes[p].kind != note.kind || notes[p].bytes != note.bytes) {
      Fail(
          ErrorCode::kFailedPrecondition,
          "rank {} came with {} bytes for a collective to which rank {} brings {}, or for another collective: they do not run the "
          "same program",
          peer, notes[p].bytes, rank_, note.bytes);
    }
  }
}

// Whoever was met again since has read what it was to read.
void NodeWindow::WaitUntilRead(Post& post, Transport& transport) {
  for (const auto& [reader, number] : post.readers) {
    if (met_[static_cast<size_t>(reader)] > number) continue;
    const std::atomic<uint64_t>& read = ReadUpTo(reader, rank_);
    Wait(transport, [&read, wanted = number] { return read.load(std::memory_order_acquire) >= wanted; });
  }
  post.readers.clear();
}

void NodeWindow::Exchange(std::span<const int64_t> group, int64_t steps, const Note& note, const Fill& fill,
                          const Read& read, Transport& transport) {
  Note mine = note, notes[kMaxRanks];
  const std::byte* slots[kMaxRanks];
  for (int64_t step = 0; step < steps; ++step) {
    mine.slot = next_slot_;
    next_slot_ = (next_slot_ + 1) % kSlots;
    Post& post = posts_[static_cast<size_t>(mine.slot)];
    WaitUntilRead(post, transport);
    fill(SlotOf(rank_, mine.slot), step);
    Meet(group, mine, {notes, group.size()}, transport);
    for (size_t p = 0; p < group.size(); ++p) {
      slots[p] = SlotOf(group[p], notes[p].slot);
      if (group[p] != rank_) post.readers.emplace_back(group[p], met_[static_cast<size_t>(group[p])]);
    }
    read({slots, group.size()}, step);
    for (const int64_t peer : group) {
      if (peer != rank_) ReadUpTo(rank_, peer).store(met_[static_cast<size_t>(peer)], std::memory_order_release);
    }
  }
}

}  // namespace hlorun::collectives
