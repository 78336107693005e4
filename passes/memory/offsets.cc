#include "passes/memory/offsets.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

namespace hlorun::passes {
namespace {

int64_t RoundUp(int64_t bytes, int64_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }

// One linear piece of memory with the blocks placed in it so far.
class Region {
 public:
  static constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max();

  explicit Region(int64_t limit) : limit_(limit) {}

  // The offset of the smallest gap that holds `block` during its life, -1 when there is none.
  int64_t BestFit(const Block& block, int64_t alignment) const {
    int64_t best = -1;
    int64_t best_gap = kUnbounded;
    int64_t free_from = 0;
    const auto consider = [&](int64_t gap_end) {
      const int64_t gap = gap_end - free_from;
      if (gap >= block.bytes && gap < best_gap) {
        best = free_from;
        best_gap = gap;
      }
    };
    for (const Entry& entry : entries_) {
      if (entry.offset + entry.block->bytes <= free_from || !LivesWith(*entry.block, block)) continue;
      if (entry.offset > free_from) consider(entry.offset);
      free_from = std::max(free_from, RoundUp(entry.offset + entry.block->bytes, alignment));
    }
    // The open end of an unbounded region is taken only when no gap fits.
    if (best < 0 && limit_ - free_from >= block.bytes) best = free_from;
    return best;
  }

  void Place(const Block& block, int64_t offset) {
    const auto at = std::upper_bound(entries_.begin(), entries_.end(), offset,
                                     [](int64_t value, const Entry& entry) { return value < entry.offset; });
    entries_.insert(at, {offset, &block});
    used_ = std::max(used_, offset + block.bytes);
  }

  int64_t used() const { return used_; }

 private:
  struct Entry {
    int64_t offset;
    const Block* block;
  };
  static bool LivesWith(const Block& a, const Block& b) {
    return a.lives.front().begin <= b.lives.back().end && b.lives.front().begin <= a.lives.back().end &&
           AnyOverlap(a.lives, b.lives);
  }
  int64_t limit_;
  int64_t used_ = 0;
  std::vector<Entry> entries_;  // by offset
};

Packing PackInOrder(const std::vector<Block>& blocks, const std::vector<Bin>& bins, const std::vector<size_t>& order,
                    int64_t alignment) {
  Packing packing;
  packing.placements.resize(blocks.size());
  std::vector<Region> regions;
  for (const Bin& bin : bins) regions.emplace_back(bin.bytes);
  Region arena(Region::kUnbounded);
  for (const size_t i : order) {
    const Block& block = blocks[i];
    Placement& placement = packing.placements[i];
    if (block.bytes == 0 || block.lives.empty()) continue;
    int64_t smallest = Region::kUnbounded;
    for (size_t b = 0; b < bins.size(); ++b) {
      if (bins[b].bytes < block.bytes || bins[b].bytes >= smallest || AnyOverlap(bins[b].taken, block.lives)) continue;
      const int64_t offset = regions[b].BestFit(block, alignment);
      if (offset < 0) continue;
      placement = {static_cast<int32_t>(b), offset};
      smallest = bins[b].bytes;
    }
    if (placement.bin >= 0) {
      regions[static_cast<size_t>(placement.bin)].Place(block, placement.offset);
    } else {
      placement.offset = arena.BestFit(block, alignment);
      arena.Place(block, placement.offset);
    }
  }
  packing.arena_bytes = RoundUp(arena.used(), alignment);
  return packing;
}

}  // namespace

bool AnyOverlap(const std::vector<Range>& a, const std::vector<Range>& b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (a[i].Overlaps(b[j])) return true;
    (a[i].end < b[j].end ? i : j)++;
  }
  return false;
}

Packing PackBlocks(const std::vector<Block>& blocks, const std::vector<Bin>& bins, int64_t alignment) {
  const auto length = [&](size_t i) {
    return blocks[i].lives.empty() ? 0 : blocks[i].lives.back().end - blocks[i].lives.front().begin;
  };
  const auto begin = [&](size_t i) { return blocks[i].lives.empty() ? 0 : blocks[i].lives.front().begin; };
  const std::vector<std::function<bool(size_t, size_t)>> orders = {
      [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; },
      [&](size_t a, size_t b) {
        return static_cast<double>(blocks[a].bytes) * static_cast<double>(length(a)) >
               static_cast<double>(blocks[b].bytes) * static_cast<double>(length(b));
      },
      [&](size_t a, size_t b) { return length(a) > length(b); },
      [&](size_t a, size_t b) { return begin(a) < begin(b); },
  };
  Packing best;
  best.arena_bytes = std::numeric_limits<int64_t>::max();
  for (const auto& before : orders) {
    std::vector<size_t> order(blocks.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), before);
    Packing packing = PackInOrder(blocks, bins, order, alignment);
    if (packing.arena_bytes < best.arena_bytes) best = std::move(packing);
  }
  return best;
}

}  // namespace hlorun::passes
