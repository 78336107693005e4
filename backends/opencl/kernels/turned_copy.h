// The way of a product's operand of 8-bit elements into local memory, where outer has neighbours side by side in memory
// and k has them in the block: matrix instructions take four consecutive k in a 32-bit word.
#pragma once

#include <functional>
#include <string>

#include "backends/opencl/kernels/operand_copy.h"
#include "backends/opencl/kernels/tiled_product.h"

namespace hlorun::opencl {

// Work-items load the same columns of four consecutive k, so that squares of 4 x 4 elements are turned in registers on
// the way to the block. The block's shape and places are in words of four k; what is loaded, in elements.
class TurnedCopy : public OperandCopy {
 public:
  // The operand's runs are multiples of 4. `from`: its words of four elements.
  TurnedCopy(const std::string& name, const TiledOperand& operand, ir::BufferRef from, const BlockShape& shape);

  ir::Stmt Load(const ir::Expr& item, const Origin& origin, int64_t outer_end, int64_t k_end) const override;
  ir::Stmt Store(const ir::Expr& item, const ir::Expr& k) const override;

 private:
  // What a work-item loads and stores at once: so many words of each of four k.
  int64_t across() const { return shape().width / (kBytesOfWord * lanes_); }
  int64_t pieces() const { return across() * shape().depth; }
  // `outer` and `k` are in words.
  using Body =
      std::function<ir::Stmt(size_t first, const ir::Expr& outer, const ir::Expr& k, const ir::Expr& is_there)>;
  ir::Stmt ForPieces(const ir::Expr& item, const Body& body) const;

  const TiledOperand operand_;
  ir::BufferRef from_;
  int64_t lanes_;
};

}  // namespace hlorun::opencl
