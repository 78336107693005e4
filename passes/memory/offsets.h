// Offsets for blocks with known lives: which blocks lie over each other.
#pragma once

#include <cstdint>
#include <vector>

#include "passes/memory/live_ranges.h"

namespace hlorun::passes {

struct Block {
  int64_t bytes = 0;
  std::vector<Range> lives;  // sorted, disjoint
};

// Memory of fixed size that may be used while its owner does not live.
struct Bin {
  int64_t bytes = 0;
  std::vector<Range> taken;  // sorted, disjoint
};

struct Placement {
  int32_t bin = -1;  // -1: the arena
  int64_t offset = 0;
};

struct Packing {
  std::vector<Placement> placements;  // by block
  int64_t arena_bytes = 0;
};

bool AnyOverlap(const std::vector<Range>& a, const std::vector<Range>& b);

// Best fit into the gaps between the blocks that live at the same time, bins first, then the arena, which grows. Tries
// a few orders of blocks and keeps the smallest arena. Offsets are multiples of `alignment`.
Packing PackBlocks(const std::vector<Block>& blocks, const std::vector<Bin>& bins, int64_t alignment);

}  // namespace hlorun::passes
