#include "backends/opencl/kernels/depthwise.h"

#include "backends/opencl/kernels/epilogue.h"
#include "backends/opencl/kernels/index_math.h"
#include "backends/opencl/kernels/register_tile.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::kIndex;
using ir::LoopRole;
using ir::Op;
using ir::Stmt;

class Depthwise {
 public:
  Depthwise(const ConvolutionTask& task, const DepthwisePlan& plan) : plan_(plan), shape_(plan.shape) {
    const int64_t pixels = shape_.batch * shape_.rows.in * shape_.columns.in;
    input_ = parameters_.Add("input", shape_.input_type, pixels * shape_.channels, task.input);
    weights_ = parameters_.Add("weights", shape_.weight_type,
                               shape_.rows.window * shape_.columns.window * shape_.channels, task.weights);
    epilogue_.emplace(task.instruction, task.hero, task.aliases, parameters_);
    if (plan.passes_caches) epilogue_->PassCaches(plan.lanes);
    staging_ = MakeStaging("staging", shape_.compute_type, plan.tile_columns * plan.lanes);
  }

  KernelDraft Emit() {
    const ir::Var block = IndexVar("block", plan_.blocks()), vector = IndexVar("vector", plan_.vectors());
    const ir::Var row = IndexVar("output_row", shape_.rows.out), image = IndexVar("image", shape_.batch);
    const ir::Var first_row = IndexVar("first_row", shape_.rows.out);
    const ir::Var first_vector = IndexVar("first_vector", plan_.vectors());
    const Expr outer = Quotient(ir::Ref(block), plan_.vector_blocks());
    image_ = ir::Ref(image);
    row_ = ir::Ref(row);
    const Expr end_vector = ir::Min(ir::Ref(first_vector) + plan_.vectors_per_block, Index(plan_.vectors()));
    const Expr end_row = ir::Min(ir::Ref(first_row) + plan_.rows_per_block, Index(shape_.rows.out));
    // A pixel's vectors one after another: they lie side by side.
    const auto vectors = [&](const Expr& x, const DepthwisePlan::Tile& place) {
      channel_ = ir::Ref(vector) * plan_.lanes;
      Stmt whole = Loop(vector, ir::Ref(first_vector), end_vector, Tile(x, place, 0));
      if (plan_.channels_left() == 0) return whole;
      channel_ = Index(shape_.channels - plan_.lanes);
      const Stmt last = Tile(x, place, plan_.lanes - plan_.channels_left());
      const Expr has_last = ir::Compare(Op::kEq, end_vector, Index(plan_.vectors()));
      return ir::Block({whole, plan_.vector_blocks() == 1 ? last : ir::If(has_last, last)});
    };
    std::vector<Stmt> tiles;
    for (const DepthwisePlan::Tile& tile : plan_.Tiles()) tiles.push_back(TilesAt(tile, vectors));
    const Stmt body =
        ir::Block({ir::Let(image, Quotient(outer, plan_.row_blocks())),
                   ir::Let(first_row, Remainder(outer, plan_.row_blocks()) * plan_.rows_per_block),
                   ir::Let(first_vector, Remainder(ir::Ref(block), plan_.vector_blocks()) * plan_.vectors_per_block),
                   Loop(row, ir::Ref(first_row), end_row, ir::Block(std::move(tiles)))});
    const Stmt nest = ir::For(LoopRole::kParallel, block, Index(0), Index(plan_.blocks()), body);
    return MakeDraft("depthwise", parameters_, ir::Block({ir::DeclareArray(staging_), nest}));
  }

 private:
  Stmt TilesAt(const DepthwisePlan::Tile& tile,
               const std::function<Stmt(const Expr& x, const DepthwisePlan::Tile& place)>& vectors) {
    if (tile.count == 1) return vectors(Index(tile.first), tile);
    const ir::Var x = IndexVar("x", shape_.columns.out);
    return Loop(x, Index(tile.first), Index(tile.first + tile.count * tile.columns), vectors(ir::Ref(x), tile),
                tile.columns);
  }

  // Pixels x .. x + columns; of those in `place` the first stands for all. `others`: channels that another tile has.
  Stmt Tile(const Expr& x, const DepthwisePlan::Tile& place, int64_t others) {
    const RegisterTile tile(fmt::format("acc{}", place.first), place.columns, 1, Vector());
    const auto index = [&](const Expr& pixel, const Expr& feature) {
      return RunIndex{{image_, row_, x + pixel, channel_ + feature}, 3};
    };
    return ir::Block(
        {tile.Declare(), WindowRows(tile, x, place),
         TileStore(*epilogue_).EmitFrom(others, tile, staging_, Index(0), Index(place.columns), plan_.lanes, index)});
  }

  ir::Type Vector() const { return {shape_.compute_type, static_cast<int>(plan_.lanes)}; }

  // The rows of the window that meet the input.
  Stmt WindowRows(const RegisterTile& tile, const Expr& x, const DepthwisePlan::Tile& place) const {
    const ConvolutionDimension& d = shape_.rows;
    const ir::Var kh = IndexVar("kh", d.window);
    const Expr top = row_ * d.stride - d.low;
    if (d.dilation == 1) {
      const Expr first = d.low > 0 ? ir::Max(Index(0), Index(0) - top) : Index(0);
      const bool may_leave = (d.out - 1) * d.stride - d.low + d.window > d.in;
      const Expr end = may_leave ? ir::Min(Index(d.window), Index(d.in) - top) : Index(d.window);
      return Loop(kh, first, end, Taps(tile, ir::Ref(kh), top + ir::Ref(kh), x, place));
    }
    const Expr at = top + ir::Ref(kh) * d.dilation;
    const Expr inside = ir::And(ir::Compare(Op::kGe, at, Index(0)), at < Index(d.in));
    return Loop(kh, Index(0), Index(d.window), ir::If(inside, Taps(tile, ir::Ref(kh), at, x, place)));
  }

  // One row of the window: each of the input's vectors is loaded once and meets all sums that it belongs to.
  Stmt Taps(const RegisterTile& tile, const Expr& kh, const Expr& input_row, const Expr& x,
            const DepthwisePlan::Tile& place) const {
    const ConvolutionDimension& d = shape_.columns;
    const int lanes = static_cast<int>(plan_.lanes);
    std::vector<Stmt> statements;
    std::vector<Expr> taps;
    for (int64_t kw = 0; kw < d.window; ++kw) {
      const ir::Var tap = ir::MakeVar(fmt::format("tap_{}", kw), Vector());
      const Expr at = (kh * d.window + kw) * shape_.channels + channel_;
      statements.push_back(ir::Let(tap, ir::Cast(ir::Load(weights_, ir::Ramp(at, lanes)), shape_.compute_type)));
      taps.push_back(ir::Ref(tap));
    }
    const ir::Var base = ir::MakeVar("row_at", kIndex);
    const Expr pixel = (image_ * shape_.rows.in + input_row) * shape_.columns.in + x * d.stride - d.low;
    statements.push_back(ir::Let(base, pixel * shape_.channels + channel_));
    for (int64_t column = 0; column < d.Reach(place.columns); ++column) {
      const int64_t in = place.first * d.stride - d.low + column;  // of the first of these tiles
      if (in < 0 || in >= d.in) continue;
      std::vector<Stmt> sums;
      const ir::Var value = ir::MakeVar(fmt::format("in_{}", column), Vector());
      for (int64_t p = 0; p < place.columns; ++p) {
        const int64_t offset = column - p * d.stride;
        if (offset < 0 || offset % d.dilation != 0 || offset / d.dilation >= d.window) continue;
        const Expr& tap = taps[static_cast<size_t>(offset / d.dilation)];
        sums.push_back(ir::Assign(tile.At(p, 0)->var, AddProduct(tile.At(p, 0), ir::Ref(value), tap)));
      }
      if (sums.empty()) continue;
      const Expr loaded = ir::Load(input_, ir::Ramp(ir::Ref(base) + column * shape_.channels, lanes));
      statements.push_back(ir::Let(value, ir::Cast(loaded, shape_.compute_type)));
      statements.insert(statements.end(), sums.begin(), sums.end());
    }
    return ir::Block(std::move(statements));
  }

  const DepthwisePlan& plan_;
  const ConvolutionShape& shape_;
  KernelParameters parameters_;
  ir::BufferRef input_, weights_, staging_;
  std::optional<Epilogue> epilogue_;
  Expr image_, row_, channel_;
};

}  // namespace

KernelDraft DepthwiseKernel(const ConvolutionTask& task, const DepthwisePlan& plan) {
  return Depthwise(task, plan).Emit();
}

}  // namespace hlorun::opencl
