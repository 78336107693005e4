#include "backends/opencl/kernels/tiled_product.h"

#include <algorithm>
#include <numeric>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/kernels/block_copy.h"
#include "backends/opencl/kernels/index_math.h"
#include "backends/opencl/kernels/register_tile.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::kIndex;
using ir::LoopRole;
using ir::Stmt;

class TiledMultiplication {
 public:
  TiledMultiplication(const TiledProduct& product, const TiledSchedule& schedule)
      : product_(product),
        items_(schedule.items),
        items_across_(schedule.items_across),
        item_rows_(schedule.item_rows),
        item_columns_(schedule.item_columns),
        rows_(schedule.rows()),
        columns_(schedule.columns()),
        depth_(schedule.depth),
        buffers_(schedule.buffers),
        part_depth_(schedule.PartDepth(product.k)),
        parts_(schedule.Parts(product.k)),
        row_lanes_(std::gcd(item_rows_, LanesOf16Bytes(product.compute_type))),
        column_lanes_(std::gcd(item_columns_, LanesOf16Bytes(product.compute_type))),
        sums_("sum", item_rows_, item_columns_ / column_lanes_,
              {product.compute_type, static_cast<int>(column_lanes_)}),
        lhs_("lhs", product.lhs,
             parameters_.Add("lhs", product.lhs.storage, product.lhs.elements, product.lhs.argument),
             {rows_, depth_, items_, schedule.buffers, BlockOrder::kOuterFastest}, product.compute_type),
        rhs_("rhs", product.rhs,
             parameters_.Add("rhs", product.rhs.storage, product.rhs.elements, product.rhs.argument),
             {columns_, depth_, items_, schedule.buffers, BlockOrder::kOuterFastest}, product.compute_type) {
    if (parts_ > 1) {
      partial_ = parameters_.Add("partial", product.compute_type, parts_ * product.batch * product.m * product.n,
                                 ScratchSlice(0, 0, true));
    } else {
      epilogue_.emplace(product.instruction, product.hero, product.aliases, parameters_);
    }
    staging_ = MakeStaging("staging", product.compute_type, item_rows_ * item_columns_);
  }

  KernelDraft Emit() {
    const int64_t row_tiles = CeilDiv(product_.m, rows_), column_tiles = CeilDiv(product_.n, columns_);
    const ir::Var batch = IndexVar("batch", product_.batch), row = IndexVar("row_tile", row_tiles);
    const ir::Var column = IndexVar("column_tile", column_tiles), part = IndexVar("part", parts_);
    batch_ = ir::Ref(batch);
    part_ = ir::Ref(part);
    first_row_ = ir::Ref(row) * rows_;
    first_column_ = ir::Ref(column) * columns_;
    const Stmt body = ir::Block({sums_.Declare(), lhs_.Declare(), rhs_.Declare(), SumBlocks(), StoreTile()});
    Stmt nest = ir::For(LoopRole::kParallel, column, Index(0), Index(column_tiles), body);
    nest = ir::For(LoopRole::kParallel, row, Index(0), Index(row_tiles), nest);
    if (parts_ > 1) nest = ir::For(LoopRole::kParallel, part, Index(0), Index(parts_), nest);
    nest = ir::For(LoopRole::kParallel, batch, Index(0), Index(product_.batch), nest);
    std::vector<Stmt> all = {ir::DeclareArray(lhs_.block()), ir::DeclareArray(rhs_.block())};
    if (!StoresPlainly()) all.push_back(ir::DeclareArray(staging_));
    all.push_back(nest);
    KernelDraft draft = MakeDraft("tiled_product", parameters_, ir::Block(std::move(all)));
    draft.function.group_items = items_;
    return draft;
  }

 private:
  // Work-item `item` of the group.
  Stmt ForItems(const std::function<Stmt(const Expr& item)>& body) const {
    const ir::Var item = IndexVar("item", items_);
    return ir::For(LoopRole::kVector, item, Index(0), Index(items_), body(ir::Ref(item)));
  }

  Stmt SumBlocks() const {
    const ir::Var k = IndexVar("k", product_.k);
    k->factor = depth_;
    const Expr begin = parts_ == 1 ? Index(0) : part_ * part_depth_;
    const Expr end = parts_ == 1 ? Index(product_.k) : ir::Min(begin + part_depth_, Index(product_.k));
    const Expr next = ir::Ref(k) + depth_;
    const Stmt store = ForItems([&](const Expr& item) {
      return ir::Block({lhs_.Store(item, ir::Ref(k)), rhs_.Store(item, ir::Ref(k))});
    });
    const Stmt block = ir::Block({store, ir::Barrier(), ir::If(next < end, LoadBlocks(next)), MultiplyBlock(ir::Ref(k)),
                                  buffers_ == 1 ? ir::Barrier() : nullptr});
    return ir::Block({LoadBlocks(begin), ir::For(LoopRole::kSerial, k, begin, end, block, depth_)});
  }

  Stmt LoadBlocks(const Expr& k) const {
    return ForItems([&](const Expr& item) {
      return ir::Block({lhs_.Load(item, {batch_, first_row_, k}, product_.m, product_.k),
                        rhs_.Load(item, {batch_, first_column_, k}, product_.n, product_.k)});
    });
  }

  // Where a work-item's rows (columns) lie in the tile: vectors of `lanes`, which alternate with those of the other
  // work-items, so that neighbours read neighbouring banks.
  static Expr PlaceInTile(const Expr& item_place, int64_t items, const Expr& i, int64_t lanes) {
    return Quotient(i, lanes) * (items * lanes) + item_place * lanes + Remainder(i, lanes);
  }
  Expr RowOf(const Expr& item, const Expr& r) const {
    return PlaceInTile(Quotient(item, items_across_), items_ / items_across_, r, row_lanes_);
  }
  Expr ColumnOf(const Expr& item, const Expr& c) const {
    return PlaceInTile(Remainder(item, items_across_), items_across_, c, column_lanes_);
  }

  Stmt MultiplyBlock(const Expr& k) const {
    return ForItems([&](const Expr& item) {
      const ir::Var p = IndexVar("p", depth_);
      const auto at = [&](const BlockCopy& operand, const Expr& place, int64_t lanes) {
        const Expr first = operand.Buffer(k) + operand.Place(place, ir::Ref(p));
        return ir::Load(operand.block(), ir::Ramp(first, static_cast<int>(lanes)));
      };
      std::vector<Stmt> step;
      std::vector<ir::Var> rows;
      for (int64_t r = 0; r < item_rows_; r += row_lanes_) {
        rows.push_back(ir::MakeVar(fmt::format("rows_{}", r), {product_.compute_type, static_cast<int>(row_lanes_)}));
        step.push_back(ir::Let(rows.back(), at(lhs_, RowOf(item, Index(r)), row_lanes_)));
      }
      step.push_back(sums_.Step(
          [&](int64_t r) { return ir::Lane(ir::Ref(rows[static_cast<size_t>(r / row_lanes_)]), r % row_lanes_); },
          [&](int64_t v) { return at(rhs_, ColumnOf(item, Index(v * column_lanes_)), column_lanes_); }));
      constexpr int64_t kUnrolled = 8;
      return ir::Unrolled(ir::For(LoopRole::kSerial, p, Index(0), Index(depth_), ir::Block(std::move(step))),
                          static_cast<int>(std::min(depth_, kUnrolled)));
    });
  }

  bool StoresPlainly() const { return !epilogue_ || epilogue_->IsPlain(); }
  // Columns side by side that are all inside or all outside, and side by side in the result.
  int64_t RunOfColumns() const {
    const bool is_along = partial_ != nullptr || [&] {
      const RunIndex at = product_.result(batch_, Index(0), Index(0));
      return at.lane_dimension + 1 == at.index.size();
    }();
    return is_along && product_.n % column_lanes_ == 0 ? column_lanes_ : 1;
  }

  // `values`: of one column or of a run of them.
  Stmt StorePlain(const Expr& row, const Expr& column, const Expr& values) const {
    if (epilogue_) return epilogue_->StorePlain(product_.result(batch_, row, column), values);
    const Expr first = (part_ * product_.batch + batch_) * product_.m + row;
    return ir::Store(partial_, ir::Ramp(first * product_.n + column, values->type.lanes), values);
  }

  Stmt StoreAt(const Expr& item, const Expr& r, const Expr& c, const std::string& name,
               const std::function<Stmt(const Expr& row, const Expr& column)>& store) const {
    const ir::Var row = ir::MakeVar("row" + name, kIndex), column = ir::MakeVar("column" + name, kIndex);
    column->factor = RunOfColumns();
    const Expr inside = ir::And(ir::Ref(row) < Index(product_.m), ir::Ref(column) < Index(product_.n));
    return ir::Block({ir::Let(row, first_row_ + RowOf(item, r)), ir::Let(column, first_column_ + ColumnOf(item, c)),
                      ir::If(inside, store(ir::Ref(row), ir::Ref(column)))});
  }

  Stmt StoreTile() const {
    return ForItems([&](const Expr& item) { return StoresPlainly() ? StoreSums(item) : FinishSums(item); });
  }

  Stmt StoreSums(const Expr& item) const {
    const int64_t run = RunOfColumns();
    std::vector<Stmt> stores;
    for (int64_t r = 0; r < item_rows_; ++r) {
      for (int64_t c = 0; c < item_columns_; c += run) {
        const Expr sums = sums_.At(r, c / column_lanes_);
        const Expr values = run == column_lanes_ ? sums : ir::Lane(sums, c % column_lanes_);
        stores.push_back(StoreAt(item, Index(r), Index(c), fmt::format("_{}_{}", r, c),
                                 [&](const Expr& row, const Expr& column) { return StorePlain(row, column, values); }));
      }
    }
    return ir::Block(std::move(stores));
  }

  // Where the epilogue is more than a store, sums pass through a private array, so that its code is there once.
  Stmt FinishSums(const Expr& item) const {
    const int64_t run = RunOfColumns();
    const ir::Var r = IndexVar("r", item_rows_), c = IndexVar("c", item_columns_);
    c->factor = run;
    const Stmt save =
        sums_.Store(staging_, [&](int64_t row, int64_t v) { return Index(row * item_columns_ + v * column_lanes_); });
    const Stmt finish = StoreAt(item, ir::Ref(r), ir::Ref(c), "_stored", [&](const Expr& row, const Expr& column) {
      return epilogue_->StoreRun(product_.result(batch_, row, column), run, run, [&](const Expr& place) {
        return ir::Load(staging_, ir::Ref(r) * item_columns_ + ir::Ref(c) + place);
      });
    });
    const Stmt columns = ir::For(LoopRole::kSerial, c, Index(0), Index(item_columns_), finish, run);
    return ir::Block({save, ir::For(LoopRole::kSerial, r, Index(0), Index(item_rows_), columns)});
  }

  const TiledProduct& product_;
  const int64_t items_, items_across_, item_rows_, item_columns_, rows_, columns_;
  const int64_t depth_, buffers_;  // of blocks
  const int64_t part_depth_, parts_;
  const int64_t row_lanes_, column_lanes_;  // of the vectors that a work-item's rows and columns come in
  KernelParameters parameters_;
  RegisterTile sums_;
  BlockCopy lhs_, rhs_;
  ir::BufferRef staging_, partial_;  // partial_: null without parts
  std::optional<Epilogue> epilogue_;
  Expr batch_, part_, first_row_, first_column_;
};

}  // namespace

KernelDraft TiledProductKernel(const TiledProduct& product, const TiledSchedule& schedule) {
  const TileExtents tile{schedule.rows(), schedule.columns(), schedule.k_parts * schedule.depth, schedule.k_parts};
  return WithNarrowIndices(TiledMultiplication(product, schedule).Emit(), product, tile);
}

}  // namespace hlorun::opencl
