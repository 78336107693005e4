// The way of a product's operand into local memory (GPU class), block by block.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backends/opencl/kernels/tiled_product.h"

namespace hlorun::opencl {

// Elements of a vector of 16 bytes: what a work-item loads at once, where the operand has as many in a run.
int64_t LanesOf16Bytes(hlo::ElementType type);

// Which of k and outer (a row of lhs, a column of rhs) has neighbours side by side in a block.
enum class BlockOrder : uint8_t { kOuterFastest, kAsStored };

// Elements from one line of a block to the next: a vector more than its `length`, so that columns of a block do not all
// lie in one bank.
int64_t LineStride(int64_t length, hlo::ElementType type);

struct BlockShape {
  int64_t width = 0, depth = 0;  // of outer, of k
  int64_t items = 0;             // that copy it
  int64_t buffers = 1;           // in which blocks lie in turn
  BlockOrder order = BlockOrder::kOuterFastest;
};

// Work-items load vectors of the next block into registers while they multiply one, and store them once all are done
// with that.
class BlockCopy {
 public:
  // `type`: of the elements of the block and, after a conversion, of what is loaded from `from`.
  BlockCopy(const std::string& name, const TiledOperand& operand, ir::BufferRef from, const BlockShape& shape,
            hlo::ElementType type);

  const ir::BufferRef& block() const { return block_; }
  // Where an element lies in its block.
  ir::Expr Place(const ir::Expr& outer, const ir::Expr& k) const;
  // Where the block at `k`, a multiple of the depth, begins.
  ir::Expr Buffer(const ir::Expr& k) const;
  bool HasKFastest() const { return shape_.order == BlockOrder::kAsStored && operand_.k_is_fastest; }

  struct Origin {
    ir::Expr batch, outer, k;  // of a block's first element
  };
  ir::Stmt Declare() const;  // the registers
  // A work-item's part of a block of a matrix of outer_end x k_end; zeros beyond it. Neighbouring work-items read
  // neighbours in memory.
  ir::Stmt Load(const ir::Expr& item, const Origin& origin, int64_t outer_end, int64_t k_end) const;
  ir::Stmt Store(const ir::Expr& item, const ir::Expr& k) const;

 private:
  int64_t vectors() const { return shape_.width * shape_.depth / lanes_; }
  using Body =
      std::function<ir::Stmt(const ir::Var& next, const ir::Expr& outer, const ir::Expr& k, const ir::Expr& is_there)>;
  ir::Stmt ForVectors(const ir::Expr& item, const Body& body) const;

  const TiledOperand& operand_;
  ir::BufferRef from_, block_;
  BlockShape shape_;
  int64_t lanes_, stride_, elements_;  // elements of a buffer
  std::vector<ir::Var> next_;
};

// What a work-group computes of a product at once; depth: how far parts of sums may reach beyond k.
struct TileExtents {
  int64_t rows, columns, depth, k_parts;
};

// The kernel with 32-bit indices, where these reach all elements, and where it computes no integers of 64 bits.
KernelDraft WithNarrowIndices(KernelDraft draft, const TiledProduct& product, const TileExtents& tile);

}  // namespace hlorun::opencl
