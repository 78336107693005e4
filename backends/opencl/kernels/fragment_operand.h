// An operand of a product by matrix instructions (fragment_product.h) on its way through local memory. Its elements
// come in 32-bit words where its runs have as many: vectors of words are what devices load and store at once. One that
// has not is loaded element by element.
#pragma once

#include <memory>
#include <string>

#include "backends/opencl/kernels/operand_copy.h"
#include "backends/opencl/kernels/tiled_product.h"

namespace hlorun::opencl {

// Elements of 16 bits lie in a block as in memory, and are turned where matrix instructions load them. Those of 8 bits
// cannot be turned there: a block holds words of four k.
class FragmentOperand {
 public:
  // A block is `width` rows or columns wide; there are `extent` of them. `copy_function`: where the schedule is
  // asynchronous; the operand's runs must allow it.
  FragmentOperand(const std::string& name, const TiledOperand& operand, KernelParameters& parameters, int64_t width,
                  int64_t extent, const FragmentSchedule& schedule, const char* copy_function);
  // Whether the operand's runs allow that its blocks are copied asynchronously.
  static bool HasVectors(const TiledOperand& operand);

  const ir::BufferRef& block() const { return copy_->block(); }
  bool HasKFastest() const { return copy_->HasKFastest(); }
  // Whether Store calls kFragmentTurn.
  bool IsTurned() const { return is_turned_; }
  ir::Stmt Declare() const { return copy_->Declare(); }
  // A work-item's part of the block from `outer` and `k` on; both are multiples of the block's sides, of k x k_end.
  ir::Stmt Load(const ir::Expr& item, const ir::Expr& batch, const ir::Expr& outer, const ir::Expr& k,
                int64_t k_end) const;
  ir::Stmt Store(const ir::Expr& item, const ir::Expr& k) const;
  // Where the word of an element of the block at `block_k` lies.
  ir::Expr Place(const ir::Expr& block_k, const ir::Expr& outer, const ir::Expr& k) const;
  // Where its word would lie if no vectors changed places (a swizzled block).
  ir::Expr PlaceInOrder(const ir::Expr& block_k, const ir::Expr& outer, const ir::Expr& k) const;
  // An element's bits.
  ir::Expr Bits(const ir::Expr& block_k, const ir::Expr& outer, const ir::Expr& k) const;

 private:
  // Elements of a word along each side of a block.
  struct Word {
    int64_t outer = 1, k = 1;
  };

  hlo::ElementType bits_;      // of an element
  Word in_memory_, in_block_;  // what the copy's Load counts, and its places
  int64_t extent_;
  bool is_turned_ = false;
  std::unique_ptr<OperandCopy> copy_;
};

}  // namespace hlorun::opencl
