#include "backends/opencl/kernels/tiled_product.h"

#include <algorithm>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/integer_dot.h"
#include "backends/opencl/kernels/block_copy.h"
#include "backends/opencl/kernels/index_math.h"
#include "backends/opencl/kernels/register_tile.h"
#include "backends/opencl/kernels/tile_sums.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::kIndex;
using ir::LoopRole;
using ir::Stmt;

bool IsByte(hlo::ElementType type) { return type == hlo::ElementType::kS8 || type == hlo::ElementType::kU8; }

// Whether sums take four products at once, of elements whose bytes lie side by side in local memory.
bool HasQuads(const TiledProduct& product, const TiledSchedule& schedule, const DeviceSpec& device) {
  return device.has_integer_dot && product.compute_type == hlo::ElementType::kS32 && IsByte(product.lhs.storage) &&
         IsByte(product.rhs.storage) && schedule.depth % kBytesOfQuad == 0;
}

class TiledMultiplication {
 public:
  TiledMultiplication(const TiledProduct& product, const TiledSchedule& schedule, const DeviceSpec& device)
      : product_(product),
        has_quads_(HasQuads(product, schedule, device)),
        signs_{product.lhs.storage == hlo::ElementType::kS8, product.rhs.storage == hlo::ElementType::kS8},
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
        row_lanes_(schedule.RowsTogether(product.compute_type)),
        column_lanes_(schedule.ColumnsTogether(product.compute_type)),
        sums_("sum", item_rows_, item_columns_ / column_lanes_,
              {product.compute_type, static_cast<int>(column_lanes_)}),
        lhs_("lhs", product.lhs,
             parameters_.Add("lhs", product.lhs.storage, product.lhs.elements, product.lhs.argument),
             BlockOf(rows_, schedule), has_quads_ ? product.lhs.storage : product.compute_type),
        rhs_("rhs", product.rhs,
             parameters_.Add("rhs", product.rhs.storage, product.rhs.elements, product.rhs.argument),
             BlockOf(columns_, schedule), has_quads_ ? product.rhs.storage : product.compute_type),
        result_(product, parts_, parameters_),
        run_(result_.RunOfColumns(column_lanes_)) {
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
    if (!result_.IsPlain()) all.push_back(ir::DeclareArray(staging_));
    all.push_back(nest);
    KernelDraft draft = MakeDraft("tiled_product", parameters_, ir::Block(std::move(all)), Helpers());
    draft.function.group_items = items_;
    return draft;
  }

 private:
  BlockShape BlockOf(int64_t width, const TiledSchedule& schedule) const {
    BlockShape shape{width, schedule.depth, schedule.items, schedule.buffers};
    shape.has_quads = has_quads_;
    return shape;
  }

  std::vector<ir::Helper> Helpers() const {
    std::vector<ir::Helper> helpers;
    if (!has_quads_) return helpers;
    for (const int lanes : {1, static_cast<int>(column_lanes_)})
      helpers.push_back({QuadDotName(signs_, lanes), QuadDotSource(signs_, lanes)});
    const auto add_loads = [&](int64_t lanes, bool is_signed) {
      const auto width = static_cast<int>(lanes);
      helpers.push_back({QuadsName(width, is_signed), QuadsSource(width, is_signed)});
    };
    add_loads(row_lanes_, signs_.a);
    add_loads(column_lanes_, signs_.b);
    return helpers;
  }

  // Work-item `item` of the group.
  Stmt ForItems(const std::function<Stmt(const Expr& item)>& body) const {
    const ir::Var item = IndexVar("item", items_);
    return ir::For(LoopRole::kVector, item, Index(0), Index(items_), body(ir::Ref(item)));
  }

  Stmt SumBlocks() const {
    const auto store = [&](const Expr& k) {
      return ForItems([&](const Expr& item) { return ir::Block({lhs_.Store(item, k), rhs_.Store(item, k)}); });
    };
    return WalkBlocks(
        {product_.k, depth_, buffers_, part_depth_, parts_}, part_, [&](const Expr& k) { return LoadBlocks(k); }, store,
        [&](const Expr& k) { return MultiplyBlock(k); });
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

  // `lanes` rows or columns from `place` on, at step `p`: single elements of k, or four of each as one word.
  Expr OfBlock(const BlockCopy& operand, const Expr& k, const Expr& place, const Expr& p, int64_t lanes) const {
    const auto width = static_cast<int>(lanes);
    if (!has_quads_) return ir::Load(operand.block(), ir::Ramp(operand.Buffer(k) + operand.Place(place, p), width));
    const Expr first = operand.Buffer(k) + operand.Place(place, p * kBytesOfQuad);
    const Expr bytes = ir::Load(operand.block(), ir::Ramp(first, kBytesOfQuad * width));
    const bool is_signed = operand.block()->storage == hlo::ElementType::kS8;
    return ir::Call({hlo::ElementType::kU32, width}, QuadsName(width, is_signed), {bytes});
  }

  Stmt MultiplyBlock(const Expr& k) const {
    const RegisterTile::Multiplier quads{
        hlo::ElementType::kU32, [this](const Expr& sum, const Expr& row, const Expr& column) {
          return ir::Call(sum->type, QuadDotName(signs_, sum->type.lanes), {sum, row, column});
        }};
    const hlo::ElementType operand = has_quads_ ? quads.operand : product_.compute_type;
    const int64_t steps = has_quads_ ? depth_ / kBytesOfQuad : depth_;
    return ForItems([&](const Expr& item) {
      const ir::Var p = IndexVar("p", steps);
      std::vector<Stmt> step;
      std::vector<ir::Var> rows;
      for (int64_t r = 0; r < item_rows_; r += row_lanes_) {
        rows.push_back(ir::MakeVar(fmt::format("rows_{}", r), {operand, static_cast<int>(row_lanes_)}));
        step.push_back(ir::Let(rows.back(), OfBlock(lhs_, k, RowOf(item, Index(r)), ir::Ref(p), row_lanes_)));
      }
      step.push_back(sums_.Step(
          [&](int64_t r) { return ir::Lane(ir::Ref(rows[static_cast<size_t>(r / row_lanes_)]), r % row_lanes_); },
          [&](int64_t v) {
            return OfBlock(rhs_, k, ColumnOf(item, Index(v * column_lanes_)), ir::Ref(p), column_lanes_);
          },
          has_quads_ ? &quads : nullptr));
      constexpr int64_t kUnrolled = 8;
      return ir::Unrolled(ir::For(LoopRole::kSerial, p, Index(0), Index(steps), ir::Block(std::move(step))),
                          static_cast<int>(std::min(steps, kUnrolled)));
    });
  }

  Stmt StoreAt(const Expr& item, const Expr& r, const Expr& c, const std::string& name,
               const std::function<Stmt(const Expr& row, const Expr& column)>& store) const {
    const ir::Var row = ir::MakeVar("row" + name, kIndex), column = ir::MakeVar("column" + name, kIndex);
    column->factor = run_;
    const Expr inside = ir::And(ir::Ref(row) < Index(product_.m), ir::Ref(column) < Index(product_.n));
    return ir::Block({ir::Let(row, first_row_ + RowOf(item, r)), ir::Let(column, first_column_ + ColumnOf(item, c)),
                      ir::If(inside, store(ir::Ref(row), ir::Ref(column)))});
  }

  Stmt StoreTile() const {
    return ForItems([&](const Expr& item) { return result_.IsPlain() ? StoreSums(item) : FinishSums(item); });
  }

  Stmt StoreSums(const Expr& item) const {
    std::vector<Stmt> stores;
    for (int64_t r = 0; r < item_rows_; ++r) {
      for (int64_t c = 0; c < item_columns_; c += run_) {
        const Expr sums = sums_.At(r, c / column_lanes_);
        const Expr values = run_ == column_lanes_ ? sums : ir::Lane(sums, c % column_lanes_);
        stores.push_back(StoreAt(
            item, Index(r), Index(c), fmt::format("_{}_{}", r, c),
            [&](const Expr& row, const Expr& column) { return result_.Store(part_, batch_, row, column, values); }));
      }
    }
    return ir::Block(std::move(stores));
  }

  // Where the epilogue is more than a store, sums pass through a private array, so that its code is there once.
  Stmt FinishSums(const Expr& item) const {
    const bool reduces = result_.epilogue().ReducesRows();
    const int64_t together = reduces ? row_lanes_ : 1;
    const ir::Var r = IndexVar("r", item_rows_), c = IndexVar("c", item_columns_);
    r->factor = together;
    c->factor = run_;
    const Stmt save =
        sums_.Store(staging_, [&](int64_t row, int64_t v) { return Index(row * item_columns_ + v * column_lanes_); });
    const auto sum_at = [&](const Expr& row, const Expr& place) {
      return ir::Load(staging_, row * item_columns_ + ir::Ref(c) + place);
    };
    const Stmt finish = StoreAt(item, ir::Ref(r), ir::Ref(c), "_stored", [&](const Expr& row, const Expr& column) {
      if (reduces)
        return ReduceRows(row, column, [&](const Expr& i, const Expr& place) { return sum_at(ir::Ref(r) + i, place); });
      return result_.epilogue().StoreRun(product_.result(batch_, row, column), run_, run_,
                                         [&](const Expr& place) { return sum_at(ir::Ref(r), place); });
    });
    const Stmt columns = ir::For(LoopRole::kSerial, c, Index(0), Index(item_columns_), finish, run_);
    return ir::Block({save, ir::For(LoopRole::kSerial, r, Index(0), Index(item_rows_), columns, together)});
  }

  // Those of a work-item that lie together: `row` is the first.
  Stmt ReduceRows(const Expr& row, const Expr& column,
                  const std::function<Expr(const Expr& i, const Expr& place)>& sum_at) const {
    const ir::Var i = IndexVar("i", row_lanes_);
    const Expr all = Index(row_lanes_);
    const Expr rows = product_.m % row_lanes_ == 0 ? all : ir::Min(all, Index(product_.m) - row);
    return result_.epilogue().StoreRows(
        i, Index(0), rows, [&](const Expr& of_group) { return product_.result(batch_, row + of_group, column); }, run_,
        run_, [&](const Expr& place) { return sum_at(ir::Ref(i), place); });
  }

  const TiledProduct& product_;
  const bool has_quads_;
  const QuadSigns signs_;
  const int64_t items_, items_across_, item_rows_, item_columns_, rows_, columns_;
  const int64_t depth_, buffers_;  // of blocks
  const int64_t part_depth_, parts_;
  const int64_t row_lanes_, column_lanes_;  // of the vectors that a work-item's rows and columns come in
  KernelParameters parameters_;
  RegisterTile sums_;
  BlockCopy lhs_, rhs_;
  SumResult result_;
  const int64_t run_;  // of columns that are stored together
  ir::BufferRef staging_;
  Expr batch_, part_, first_row_, first_column_;
};

}  // namespace

KernelDraft TiledProductKernel(const TiledProduct& product, const TiledSchedule& schedule, const DeviceSpec& device) {
  const TileExtents tile{schedule.rows(), schedule.columns(), schedule.k_parts * schedule.depth, schedule.k_parts};
  return WithNarrowIndices(TiledMultiplication(product, schedule, device).Emit(), product, tile);
}

}  // namespace hlorun::opencl
