// The way of a product's operand of 8-bit elements into local memory, in whichever order and runs they lie in memory.
#pragma once

#include <functional>
#include <string>

#include "backends/opencl/kernels/operand_copy.h"
#include "backends/opencl/kernels/tiled_product.h"

namespace hlorun::opencl {

// Work-items load elements one by one and put four of consecutive k together to a word, so that registers hold no more
// than those of the other copies. The block's shape and places are in words of four k; what is loaded, in elements.
class GatheredCopy : public OperandCopy {
 public:
  // `from`: its elements, as u8.
  GatheredCopy(const std::string& name, const TiledOperand& operand, ir::BufferRef from, const BlockShape& shape);

  ir::Stmt Load(const ir::Expr& item, const Origin& origin, int64_t outer_end, int64_t k_end) const override;
  ir::Stmt Store(const ir::Expr& item, const ir::Expr& k) const override;

 private:
  int64_t words() const { return shape().width * shape().depth; }
  using Body = std::function<ir::Stmt(const ir::Var& next, const ir::Expr& outer, const ir::Expr& k_word,
                                      const ir::Expr& is_there)>;
  ir::Stmt ForWords(const ir::Expr& item, const Body& body) const;

  const TiledOperand operand_;
  ir::BufferRef from_;
};

}  // namespace hlorun::opencl
