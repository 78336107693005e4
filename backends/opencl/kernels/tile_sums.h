// What the kernels of GPU class that compute tiles of a product share: the walk over blocks of k, and where sums go.
#pragma once

#include <functional>
#include <optional>

#include "backends/opencl/kernels/tiled_product.h"
#include "hlo/error.h"

namespace hlorun::opencl {

// How k is walked: `depth` at a time, from one part of it to the next.
struct BlockWalk {
  int64_t k, depth, buffers, part_depth, parts;
};

// For each block of `part`: it is stored to local memory, the next one loaded into registers, and it is multiplied.
// Each is a loop over the group's work-items, of the block that begins at a k.
using OfBlock = std::function<ir::Stmt(const ir::Expr& k)>;
ir::Stmt WalkBlocks(const BlockWalk& walk, const ir::Expr& part, const OfBlock& load, const OfBlock& store,
                    const OfBlock& multiply);

// The same where blocks are copied while others are multiplied, one less at a time than there are `buffers`: Load
// begins to copy a block, `close` ends what one round began, and `wait` returns once all but the last `rounds` of them
// are there and what was multiplied before is done.
struct AheadOfBlocks {
  OfBlock load;
  std::function<ir::Stmt()> close;
  std::function<ir::Stmt(int64_t rounds)> wait;
  OfBlock multiply;
};
ir::Stmt WalkBlocksAhead(const BlockWalk& walk, const ir::Expr& part, const AheadOfBlocks& of);

// Sums of a part go to the instruction's scratch, [part][batch][m][n], whole ones through the epilogue.
class SumResult {
 public:
  // Adds what it stores to, and what the epilogue reads, to `parameters`.
  SumResult(const TiledProduct& product, int64_t parts, KernelParameters& parameters);

  bool IsPlain() const { return !epilogue_ || epilogue_->IsPlain(); }
  const Epilogue& epilogue() const {  // where not plain
    HLORUN_CHECK(epilogue_.has_value());
    return *epilogue_;
  }
  // `lanes` where so many columns, from a multiple of as many on, are all inside or all outside of the result, and side
  // by side in it; else 1.
  int64_t RunOfColumns(int64_t lanes) const;
  // Where IsPlain. `values`: of one column or of a run of them.
  ir::Stmt Store(const ir::Expr& part, const ir::Expr& batch, const ir::Expr& row, const ir::Expr& column,
                 const ir::Expr& values) const;

 private:
  const TiledProduct& product_;
  ir::BufferRef partial_;             // null without parts
  std::optional<Epilogue> epilogue_;  // none with parts
};

}  // namespace hlorun::opencl
