#include "backends/collectives/window_collectives.h"

#include <algorithm>
#include <cstring>

#include "backends/collectives/stream_copy.h"
#include "backends/collectives/tree_reduce.h"

namespace hlorun::collectives {
namespace {

constexpr int64_t kAlignment = 64;
// A message is cut into about so many pieces, so that one is filled while another is read.
constexpr int64_t kPieces = 4;
constexpr int64_t kSmallestPiece = 16 << 10;
// Up to so many bytes, one meeting and a copy through slots cost less than two meetings.
constexpr int64_t kSlotBytes = 512;
// Of a reduction in place, what is computed at once and then copied to every result: stays in the first cache.
constexpr int64_t kBlock = 16 << 10;

enum Kind : int32_t { kAllReduce = 1, kAllGather, kReduceScatter, kAllToAll, kPermute };

// How `bytes` are cut into pieces that fit into `room`; pieces hold whole elements of any type.
struct Pieces {
  int64_t bytes, piece, count;

  Pieces(int64_t bytes_in, int64_t room) : bytes(bytes_in) {
    const int64_t wanted = std::max((bytes + kPieces - 1) / kPieces, kSmallestPiece);
    piece = std::min(wanted, room) / kAlignment * kAlignment;
    count = (bytes + piece - 1) / piece;
  }
  int64_t Begin(int64_t step) const { return step * piece; }
  int64_t Length(int64_t step) const { return std::min(piece, bytes - step * piece); }
};

size_t Size(int64_t n) { return static_cast<size_t>(n); }
int64_t Length(std::span<const std::byte> bytes) { return static_cast<int64_t>(bytes.size()); }

bool Overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

// Of an operand that goes to several results: read once from memory, then from the second cache.
constexpr int64_t kCopied = 256 << 10;
constexpr size_t kBulkBytes = 64 << 10;

void CopyBlock(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes >= kBulkBytes) {
    BulkCopy(to, from, bytes);
  } else {
    std::memcpy(to, from, bytes);
  }
}

using Copier = void (*)(std::byte* to, const std::byte* from, size_t bytes);
void CacheCopy(std::byte* to, const std::byte* from, size_t bytes) { std::memcpy(to, from, bytes); }
// How results of so many bytes a rank are written: together they may not fit into the cache that the ranks share.
Copier CopierFor(const WindowGroup& group, size_t result_bytes) {
  return result_bytes * group.ranks.size() > 2 * SharedCacheBytes() ? StreamCopy : CacheCopy;
}

// One collective on operands in the shared heaps: a meeting tells where they lie, another that all are done with them.
class InPlace {
 public:
  // `in` and `out`: what others may read and write; empty: nothing.
  InPlace(const WindowGroup& group, Kind kind, int64_t bytes, std::span<const std::byte> in,
          std::span<const std::byte> out)
      : group_(group) {
    note_.kind = kind;
    note_.bytes = bytes;
    const SharedHeap* heap = group.window.heap().get();
    if (heap == nullptr) return;
    if (!in.empty()) note_.in = heap->OffsetOf(in.data());
    if (!out.empty()) note_.out = heap->OffsetOf(out.data());
    group.window.Meet(group.ranks, note_, {notes_, group.ranks.size()}, group.transport);
  }

  bool AllIns() const { return All(&NodeWindow::Note::in); }
  bool AllOuts() const { return All(&NodeWindow::Note::out); }
  const std::byte* In(size_t position) const { return At(position, notes_[position].in); }
  std::byte* Out(size_t position) const { return At(position, notes_[position].out); }

  void Finish() {
    FinishStreams();
    group_.window.Meet(group_.ranks, note_, {notes_, group_.ranks.size()}, group_.transport);
  }

 private:
  bool All(int64_t NodeWindow::Note::*place) const {
    return group_.window.heap() != nullptr &&
           std::all_of(notes_, notes_ + group_.ranks.size(),
                       [&](const NodeWindow::Note& note) { return note.*place >= 0; });
  }
  std::byte* At(size_t position, int64_t offset) const {
    return group_.window.heap()->At(static_cast<int>(group_.ranks[position]), offset);
  }

  const WindowGroup& group_;
  NodeWindow::Note note_;
  NodeWindow::Note notes_[NodeWindow::kMaxRanks];
};

NodeWindow::Note SlotNote(Kind kind, int64_t bytes) {
  NodeWindow::Note note;
  note.kind = kind;
  note.bytes = bytes;
  return note;
}

// This rank's part of all operands, reduced into all results.
void ReduceInPlace(const WindowGroup& group, const InPlace& place, int64_t bytes, const Reduction& reduction) {
  const int64_t width = hlo::BytesOf(reduction.type);
  const auto n = static_cast<int64_t>(group.ranks.size());
  // Parts begin at cache lines, so that no two ranks write one.
  const int64_t part = ((bytes + n - 1) / n + kAlignment - 1) / kAlignment * kAlignment;
  const int64_t begin = std::min(bytes, part * group.me), end = std::min(bytes, begin + part);
  const Copier copy = CopierFor(group, Size(bytes));
  alignas(64) std::byte block[kBlock];
  const std::byte* parts[NodeWindow::kMaxRanks];
  for (int64_t at = begin; at < end; at += kBlock) {
    const int64_t length = std::min(kBlock, end - at);
    for (size_t p = 0; p < group.ranks.size(); ++p) parts[p] = place.In(p) + at;
    // Results that stay in the cache are computed where they belong, others are copied past it.
    std::byte* sums = copy == CacheCopy ? place.Out(Size(group.me)) + at : block;
    TreeReduce({parts, group.ranks.size()}, sums, length / width, reduction);
    for (size_t p = 0; p < group.ranks.size(); ++p) {
      if (place.Out(p) + at != sums) copy(place.Out(p) + at, sums, Size(length));
    }
  }
}

}  // namespace

void WindowAllReduce(const WindowGroup& group, std::span<const std::byte> in, std::span<std::byte> out,
                     const Reduction& reduction) {
  const int64_t bytes = Length(in), width = hlo::BytesOf(reduction.type);
  if (bytes > kSlotBytes) {
    InPlace place(group, kAllReduce, bytes, in, out);
    if (place.AllIns() && place.AllOuts()) {
      ReduceInPlace(group, place, bytes, reduction);
      return place.Finish();
    }
  }
  const Pieces pieces(bytes, NodeWindow::kSlotBytes);
  group.window.Exchange(
      group.ranks, pieces.count, SlotNote(kAllReduce, bytes),
      [&](std::byte* slot, int64_t step) {
        std::memcpy(slot, in.data() + pieces.Begin(step), Size(pieces.Length(step)));
      },
      [&](std::span<const std::byte* const> slots, int64_t step) {
        TreeReduce(slots, out.data() + pieces.Begin(step), pieces.Length(step) / width, reduction);
      },
      group.transport);
}

void WindowAllGather(const WindowGroup& group, std::span<const std::byte> in, std::span<std::byte> out) {
  const int64_t bytes = Length(in);
  if (bytes > kSlotBytes) {
    InPlace place(group, kAllGather, bytes, {}, out);
    if (place.AllOuts()) {
      for (int64_t at = 0; at < bytes; at += kCopied) {
        for (size_t p = 0; p < group.ranks.size(); ++p) {
          std::byte* to = place.Out(p) + group.me * bytes + at;
          if (to != in.data() + at) CopyBlock(to, in.data() + at, Size(std::min(kCopied, bytes - at)));
        }
      }
      return place.Finish();
    }
  }
  const Pieces pieces(bytes, NodeWindow::kSlotBytes);
  std::byte* mine = out.data() + Size(group.me) * in.size();
  group.window.Exchange(
      group.ranks, pieces.count, SlotNote(kAllGather, bytes),
      [&](std::byte* slot, int64_t step) {
        std::memcpy(slot, in.data() + pieces.Begin(step), Size(pieces.Length(step)));
      },
      [&](std::span<const std::byte* const> slots, int64_t step) {
        for (size_t p = 0; p < slots.size(); ++p) {
          if (static_cast<int64_t>(p) == group.me && mine == in.data()) continue;
          std::memcpy(out.data() + p * in.size() + pieces.Begin(step), slots[p], Size(pieces.Length(step)));
        }
      },
      group.transport);
}

namespace {

// Each rank's slot holds a part for each other rank: block p of `in`, for position p.
template <typename Take>
void ExchangeBlocks(const WindowGroup& group, Kind kind, std::span<const std::byte> in, Take&& take) {
  const auto n = static_cast<int64_t>(group.ranks.size());
  const int64_t block = Length(in) / n;
  const Pieces pieces(block, NodeWindow::kSlotBytes / n);
  const std::byte* parts[NodeWindow::kMaxRanks];
  group.window.Exchange(
      group.ranks, pieces.count, SlotNote(kind, Length(in)),
      [&](std::byte* slot, int64_t step) {
        for (int64_t p = 0; p < n; ++p) {
          if (p == group.me) continue;
          std::memcpy(slot + p * pieces.piece, in.data() + p * block + pieces.Begin(step), Size(pieces.Length(step)));
        }
      },
      [&](std::span<const std::byte* const> slots, int64_t step) {
        for (size_t p = 0; p < slots.size(); ++p) parts[p] = slots[p] + group.me * pieces.piece;
        parts[group.me] = in.data() + group.me * block + pieces.Begin(step);
        take(std::span<const std::byte* const>(parts, slots.size()), pieces.Begin(step), pieces.Length(step));
      },
      group.transport);
}

}  // namespace

void WindowReduceScatter(const WindowGroup& group, std::span<const std::byte> in, std::span<std::byte> out,
                         const Reduction& reduction) {
  const int64_t width = hlo::BytesOf(reduction.type), block = Length(out);
  const int64_t mine = group.me * block;
  if (block > kSlotBytes / 2) {
    // Where the result lies over the operand, only this rank's own block of it is free.
    const bool readable = !Overlap(in, out) || out.data() == in.data() + mine;
    InPlace place(group, kReduceScatter, Length(in), readable ? in : std::span<const std::byte>(), {});
    if (place.AllIns()) {
      const Copier copy = CopierFor(group, out.size());
      alignas(64) std::byte sums[kBlock];
      const std::byte* parts[NodeWindow::kMaxRanks];
      for (int64_t at = 0; at < block; at += kBlock) {
        const int64_t length = std::min(kBlock, block - at);
        for (size_t p = 0; p < group.ranks.size(); ++p) parts[p] = place.In(p) + mine + at;
        const std::span<const std::byte* const> all(parts, group.ranks.size());
        if (copy == CacheCopy) {
          TreeReduce(all, out.data() + at, length / width, reduction);
        } else {
          TreeReduce(all, sums, length / width, reduction);
          copy(out.data() + at, sums, Size(length));
        }
      }
      return place.Finish();
    }
  }
  ExchangeBlocks(group, kReduceScatter, in,
                 [&](std::span<const std::byte* const> parts, int64_t begin, int64_t length) {
                   TreeReduce(parts, out.data() + begin, length / width, reduction);
                 });
}

void WindowAllToAll(const WindowGroup& group, std::span<const std::byte> in, std::span<std::byte> out) {
  const auto n = static_cast<int64_t>(group.ranks.size());
  const int64_t block = Length(in) / n;
  if (block > kSlotBytes / 2) {
    InPlace place(group, kAllToAll, Length(in), {}, Overlap(in, out) ? std::span<const std::byte>() : out);
    if (place.AllOuts()) {
      // Each begins with another, so that no two write into one rank's memory at a time.
      for (int64_t i = 0; i < n; ++i) {
        const int64_t p = (group.me + i) % n;
        CopyBlock(place.Out(Size(p)) + group.me * block, in.data() + p * block, Size(block));
      }
      return place.Finish();
    }
  }
  // In one buffer block p is sent before it is overwritten: both lie at the same place of the same piece.
  ExchangeBlocks(group, kAllToAll, in, [&](std::span<const std::byte* const> parts, int64_t begin, int64_t length) {
    for (size_t p = 0; p < parts.size(); ++p) {
      std::byte* to = out.data() + Size(static_cast<int64_t>(p) * block + begin);
      if (to != parts[p]) std::memcpy(to, parts[p], Size(length));
    }
  });
}

void WindowPermute(const WindowGroup& group, int64_t source, int64_t target, std::span<const std::byte> in,
                   std::span<std::byte> out) {
  const int64_t bytes = Length(in);
  const Pieces pieces(bytes, NodeWindow::kSlotBytes);
  group.window.Exchange(
      group.ranks, pieces.count, SlotNote(kPermute, bytes),
      [&](std::byte* slot, int64_t step) {
        if (target >= 0) std::memcpy(slot, in.data() + pieces.Begin(step), Size(pieces.Length(step)));
      },
      [&](std::span<const std::byte* const> slots, int64_t step) {
        if (source >= 0) std::memcpy(out.data() + pieces.Begin(step), slots[Size(source)], Size(pieces.Length(step)));
      },
      group.transport);
}

}  // namespace hlorun::collectives
