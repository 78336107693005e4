// The way of a product's operand into local memory (GPU class), block by block.
#pragma once

#include <functional>
#include <string>

#include "backends/opencl/kernels/operand_copy.h"
#include "backends/opencl/kernels/tiled_product.h"

namespace hlorun::opencl {

// By vectors along whichever of k and outer has neighbours side by side in memory; neighbouring work-items read
// neighbours there. Where the block has the other, elements are stored one by one. A swizzled block is copied
// asynchronously, by vectors of 16 bytes.
class BlockCopy : public OperandCopy {
 public:
  // `type`: of the elements of the block and, after a conversion, of what is loaded from `from`. `copy_function`: of
  // codegen/asynchronous_copies.h, where the block is swizzled.
  BlockCopy(const std::string& name, const TiledOperand& operand, ir::BufferRef from, const BlockShape& shape,
            hlo::ElementType type, const char* copy_function = nullptr);

  ir::Stmt Load(const ir::Expr& item, const Origin& origin, int64_t outer_end, int64_t k_end) const override;
  ir::Stmt Store(const ir::Expr& item, const ir::Expr& k) const override;

 private:
  int64_t vectors() const { return shape().width * shape().depth / lanes_; }
  // The how manieth of the work-item's vectors, and where it lies in a block, if it does.
  using Body =
      std::function<ir::Stmt(size_t number, const ir::Expr& outer, const ir::Expr& k, const ir::Expr& is_there)>;
  // Into a block that has quads.
  ir::Stmt StoreQuads(const ir::Expr& at, const ir::Expr& values) const;
  ir::Stmt ForVectors(const ir::Expr& item, const Body& body) const;

  const TiledOperand operand_;
  ir::BufferRef from_;
  const char* copy_function_;
  int64_t lanes_;
};

// What a work-group computes of a product at once; depth: how far parts of sums may reach beyond k.
struct TileExtents {
  int64_t rows, columns, depth, k_parts;
};

// The kernel with 32-bit indices, where these reach all elements, and where it computes no integers of 64 bits.
KernelDraft WithNarrowIndices(KernelDraft draft, const TiledProduct& product, const TileExtents& tile);

}  // namespace hlorun::opencl
