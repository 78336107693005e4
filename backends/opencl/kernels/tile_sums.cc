#include "backends/opencl/kernels/tile_sums.h"

#include "backends/opencl/kernels/index_math.h"

namespace hlorun::opencl {

using ir::Expr;
using ir::Stmt;

Stmt WalkBlocks(const BlockWalk& walk, const Expr& part, const OfBlock& load, const OfBlock& store,
                const OfBlock& multiply) {
  const ir::Var k = IndexVar("k", walk.k);
  k->factor = walk.depth;
  const Expr begin = walk.parts == 1 ? Index(0) : part * walk.part_depth;
  const Expr end = walk.parts == 1 ? Index(walk.k) : ir::Min(begin + walk.part_depth, Index(walk.k));
  const Expr next = ir::Ref(k) + walk.depth;
  const Stmt block = ir::Block({store(ir::Ref(k)), ir::Barrier(), ir::If(next < end, load(next)), multiply(ir::Ref(k)),
                                walk.buffers == 1 ? ir::Barrier() : nullptr});
  return ir::Block({load(begin), ir::For(ir::LoopRole::kSerial, k, begin, end, block, walk.depth)});
}

SumResult::SumResult(const TiledProduct& product, int64_t parts, KernelParameters& parameters) : product_(product) {
  if (parts > 1) {
    partial_ = parameters.Add("partial", product.compute_type, parts * product.batch * product.m * product.n,
                              ScratchSlice(0, 0, true));
  } else {
    epilogue_.emplace(product.instruction, product.hero, product.aliases, parameters);
  }
}

int64_t SumResult::RunOfColumns(int64_t lanes) const {
  if (product_.n % lanes != 0) return 1;
  if (partial_ != nullptr) return lanes;
  const RunIndex at = product_.result(Index(0), Index(0), Index(0));
  return at.lane_dimension + 1 == at.index.size() ? lanes : 1;
}

Stmt SumResult::Store(const Expr& part, const Expr& batch, const Expr& row, const Expr& column,
                      const Expr& values) const {
  if (epilogue_) return epilogue_->StorePlain(product_.result(batch, row, column), values);
  const Expr first = (part * product_.batch + batch) * product_.m + row;
  return ir::Store(partial_, ir::Ramp(first * product_.n + column, values->type.lanes), values);
}

}  // namespace hlorun::opencl
