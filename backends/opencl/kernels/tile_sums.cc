#include "backends/opencl/kernels/tile_sums.h"

#include "backends/opencl/kernels/index_math.h"

namespace hlorun::opencl {

using ir::Expr;
using ir::Stmt;

namespace {

// Of a part.
struct Extent {
  Expr begin, end;
};
Extent ExtentOf(const BlockWalk& walk, const Expr& part) {
  if (walk.parts == 1) return {Index(0), Index(walk.k)};
  const Expr begin = part * walk.part_depth;
  return {begin, ir::Min(begin + walk.part_depth, Index(walk.k))};
}

ir::Var FirstOfBlock(const BlockWalk& walk) {
  const ir::Var k = IndexVar("k", walk.k);
  k->factor = walk.depth;
  return k;
}

}  // namespace

Stmt WalkBlocks(const BlockWalk& walk, const Expr& part, const OfBlock& load, const OfBlock& store,
                const OfBlock& multiply) {
  const ir::Var k = FirstOfBlock(walk);
  const auto [begin, end] = ExtentOf(walk, part);
  const Expr next = ir::Ref(k) + walk.depth;
  const Stmt block = ir::Block({store(ir::Ref(k)), ir::Barrier(), ir::If(next < end, load(next)), multiply(ir::Ref(k)),
                                walk.buffers == 1 ? ir::Barrier() : nullptr});
  return ir::Block({load(begin), ir::For(ir::LoopRole::kSerial, k, begin, end, block, walk.depth)});
}

Stmt WalkBlocksAhead(const BlockWalk& walk, const Expr& part, const AheadOfBlocks& of) {
  const ir::Var k = FirstOfBlock(walk);
  const auto [begin, end] = ExtentOf(walk, part);
  const int64_t ahead = walk.buffers - 1;
  const auto load = [&of, end = end](const Expr& block) { return ir::If(block < end, of.load(block)); };
  if (ahead == 0) {
    const Expr at = ir::Ref(k);
    const Stmt block =
        ir::Block({of.load(at), of.close(), of.wait(0), ir::Barrier(), of.multiply(at), of.wait(0), ir::Barrier()});
    return ir::For(ir::LoopRole::kSerial, k, begin, end, block, walk.depth);
  }
  std::vector<Stmt> all;
  for (int64_t i = 0; i < ahead; ++i) {
    all.push_back(load(begin + i * walk.depth));
    all.push_back(of.close());
  }
  const Stmt block = ir::Block(
      {of.wait(ahead - 1), ir::Barrier(), load(ir::Ref(k) + ahead * walk.depth), of.close(), of.multiply(ir::Ref(k))});
  all.push_back(ir::For(ir::LoopRole::kSerial, k, begin, end, block, walk.depth));
  return ir::Block(std::move(all));
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
