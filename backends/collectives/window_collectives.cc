#include "backends/collectives/window_collectives.h"

#include <algorithm>
#include <cstring>

#include "backends/collectives/tree_reduce.h"

namespace hlorun::collectives {
namespace {

constexpr int64_t kAlignment = 64;
// A message is cut into about so many pieces, so that one is filled while another is read.
constexpr int64_t kPieces = 4;
constexpr int64_t kSmallestPiece = 16 << 10;

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

}  // namespace

void WindowAllReduce(const WindowGroup& group, std::span<const std::byte> in, std::span<std::byte> out, const Reduction& reduction) {
  const Pieces pieces(static_cast<int64_t>(in.size()), NodeWindow::kSlotBytes);
  const int64_t width = hlo::BytesOf(reduction.type);
  std::vector<const std::byte*> parts(group.ranks.size());
  group.window.Exchange(
      group.ranks, pieces.count,
      [&](std::byte* slot, int64_t step) { std::memcpy(slot, in.data() + pieces.Begin(step), Size(pieces.Length(step))); },
      [&](std::span<const std::byte* const> slots, int64_t step) {
        std::copy(slots.begin(), slots.end(), parts.begin());
        TreeReduce(parts, out.data() + pieces.Begin(step), pieces.Length(step) / width, reduction);
      },
      group.transport);
}

void WindowAllGather(const WindowGroup& group, std::span<const std::byte> in, std::span<std::byte> out) {
  const Pieces pieces(static_cast<int64_t>(in.size()), NodeWindow::kSlotBytes);
  std::byte* mine = out.data() + Size(group.me) * in.size();
  group.window.Exchange(
      group.ranks, pieces.count,
      [&](std::byte* slot, int64_t step) { std::memcpy(slot, in.data() + pieces.Begin(step), Size(pieces.Length(step))); },
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
void ExchangeBlocks(const WindowGroup& group, std::span<const std::byte> in, Take&& take) {
  const auto n = static_cast<int64_t>(group.ranks.size());
  const int64_t block = static_cast<int64_t>(in.size()) / n;
  const Pieces pieces(block, NodeWindow::kSlotBytes / n);
  std::vector<const std::byte*> parts(group.ranks.size());
  group.window.Exchange(
      group.ranks, pieces.count,
      [&](std::byte* slot, int64_t step) {
        for (int64_t p = 0; p < n; ++p) {
          if (p == group.me) continue;
          std::memcpy(slot + p * pieces.piece, in.data() + p * block + pieces.Begin(step), Size(pieces.Length(step)));
        }
      },
      [&](std::span<const std::byte* const> slots, int64_t step) {
        for (size_t p = 0; p < parts.size(); ++p) parts[p] = slots[p] + group.me * pieces.piece;
        parts[Size(group.me)] = in.data() + group.me * block + pieces.Begin(step);
        take(parts, pieces.Begin(step), pieces.Length(step));
      },
      group.transport);
}

}  // namespace

void WindowReduceScatter(const WindowGroup& group, std::span<const std::byte> in, std::span<std::byte> out,
                         const Reduction& reduction) {
  const int64_t width = hlo::BytesOf(reduction.type);
  ExchangeBlocks(group, in, [&](const std::vector<const std::byte*>& parts, int64_t begin, int64_t length) {
    TreeReduce(parts, out.data() + begin, length / width, reduction);
  });
}

void WindowAllToAll(const WindowGroup& group, std::span<const std::byte> in, std::span<std::byte> out) {
  const size_t block = in.size() / group.ranks.size();
  // In one buffer block p is sent before it is overwritten: both lie at the same place of the same piece.
  ExchangeBlocks(group, in, [&](const std::vector<const std::byte*>& parts, int64_t begin, int64_t length) {
    for (size_t p = 0; p < parts.size(); ++p) {
      std::byte* to = out.data() + p * block + begin;
      if (to != parts[p]) std::memcpy(to, parts[p], Size(length));
    }
  });
}

}  // namespace hlorun::collectives
