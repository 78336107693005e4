// Blocks of a product's operand in local memory (GPU class), and that work-items copy them there.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backends/opencl/codegen/kernel_ir.h"

namespace hlorun::opencl {

// Elements of 8 bits that matrix instructions take as one word of consecutive k.
inline constexpr int64_t kBytesOfWord = 4;

// Elements of a vector of 16 bytes: what a work-item loads at once, where the operand has as many in a run.
int64_t LanesOf16Bytes(hlo::ElementType type);

// Elements from one line of a block to the next: a vector more than its `length`, so that columns of a block do not all
// lie in one bank.
int64_t LineStride(int64_t length, hlo::ElementType type);

// `condition`, and that `x` is below `end` where it may not be: it lies in one of the blocks of `side`.
ir::Expr AndBelow(const ir::Expr& condition, const ir::Expr& x, int64_t end, int64_t side);

struct BlockShape {
  int64_t width = 0, depth = 0;  // of outer (a row of lhs, a column of rhs), of k
  int64_t items = 0;             // that copy it
  int64_t buffers = 1;           // in which blocks lie in turn
  bool k_is_fastest = false;     // neighbours in k lie side by side in it; else those in outer
  // Lines of up to 128 bytes, one after another, whose vectors of 16 bytes change places from line to line, so that
  // those of a column lie in different banks ("swizzling modes" of the PTX manual). Longer ones lie in pieces of 128
  // bytes, each with its own lines. Sides are powers of two. Else lines are a vector apart.
  bool swizzled = false;
  bool has_quads = false;  // of elements of 8 bits: four of k side by side, then those of the next outer
};

// Work-items load the next block into registers while they multiply one, and store it once all are done with that; or
// they have blocks copied while they multiply others, where Load begins to and Store does nothing.
class OperandCopy {
 public:
  OperandCopy(const std::string& name, const BlockShape& shape, hlo::ElementType type);
  virtual ~OperandCopy() = default;
  OperandCopy(const OperandCopy&) = delete;
  OperandCopy& operator=(const OperandCopy&) = delete;

  const ir::BufferRef& block() const { return block_; }
  bool HasKFastest() const { return shape_.k_is_fastest; }
  // Where an element lies in its block.
  ir::Expr Place(const ir::Expr& outer, const ir::Expr& k) const;
  // Where it would lie if no vectors changed places (`swizzled`).
  ir::Expr PlaceInOrder(const ir::Expr& outer, const ir::Expr& k) const;
  // Where the block at `k`, a multiple of the depth, begins.
  ir::Expr Buffer(const ir::Expr& k) const;

  struct Origin {
    ir::Expr batch, outer, k;  // of a block's first element
  };
  ir::Stmt Declare() const;  // the registers
  // A work-item's part of a block of a matrix of outer_end x k_end; zeros beyond it.
  virtual ir::Stmt Load(const ir::Expr& item, const Origin& origin, int64_t outer_end, int64_t k_end) const = 0;
  virtual ir::Stmt Store(const ir::Expr& item, const ir::Expr& k) const = 0;

 protected:
  const BlockShape& shape() const { return shape_; }
  int64_t stride() const { return stride_; }  // of lines
  // So many registers of vectors of so many lanes.
  void SetRegisters(const std::string& name, int64_t number, int64_t lanes);
  const std::vector<ir::Var>& registers() const { return next_; }

 private:
  // Where the line's vector that comes as the how manieth in its piece lies.
  using Turn = std::function<ir::Expr(const ir::Expr& line, const ir::Expr& vector)>;
  ir::Expr PlaceOf(const ir::Expr& outer, const ir::Expr& k, const Turn& turn) const;

  BlockShape shape_;
  int64_t stride_, elements_;  // elements of a buffer
  ir::BufferRef block_;
  std::vector<ir::Var> next_;
};

}  // namespace hlorun::opencl
