#include "backends/opencl/kernels/tiled_product.h"

#include <algorithm>

#include "backends/opencl/codegen/ceil_div.h"
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
        part_depth_(schedule.PartDepth(product.k)),
        parts_(schedule.Parts(product.k)),
        sums_("sum", item_rows_, item_columns_, {product.compute_type, 1}) {
    lhs_ = parameters_.Add("lhs", product.lhs.storage, product.lhs.elements, product.lhs.argument);
    rhs_ = parameters_.Add("rhs", product.rhs.storage, product.rhs.elements, product.rhs.argument);
    if (parts_ > 1) {
      partial_ = parameters_.Add("partial", product.compute_type, parts_ * product.batch * product.m * product.n,
                                 ScratchSlice(0, 0, true));
    } else {
      epilogue_.emplace(product.instruction, product.hero, product.aliases, parameters_);
    }
    lhs_block_ = ir::MakeBuffer("lhs_block", product.compute_type, depth_ * rows_, ir::Buffer::Space::kLocal, true);
    rhs_block_ = ir::MakeBuffer("rhs_block", product.compute_type, depth_ * columns_, ir::Buffer::Space::kLocal, true);
    staging_ = MakeStaging("staging", product.compute_type, item_rows_ * item_columns_);
  }

  KernelDraft Emit() {
    const int64_t row_tiles = CeilDiv(product_.m, rows_), column_tiles = CeilDiv(product_.n, columns_);
    const ir::Var batch = IndexVar("batch", product_.batch), row = IndexVar("row_tile", row_tiles);
    const ir::Var column = IndexVar("column_tile", column_tiles), k = IndexVar("k", product_.k);
    const ir::Var part = IndexVar("part", parts_);
    batch_ = ir::Ref(batch);
    part_ = ir::Ref(part);
    const Expr k_begin = parts_ == 1 ? Index(0) : part_ * part_depth_;
    const Expr k_end = parts_ == 1 ? Index(product_.k) : ir::Min(k_begin + part_depth_, Index(product_.k));
    const Expr first_row = ir::Ref(row) * rows_, first_column = ir::Ref(column) * columns_;
    const Stmt block =
        ir::Block({CopyBlock(product_.lhs, lhs_, lhs_block_, rows_, first_row, product_.m, ir::Ref(k)),
                   CopyBlock(product_.rhs, rhs_, rhs_block_, columns_, first_column, product_.n, ir::Ref(k)),
                   ir::Barrier(), MultiplyBlock(), ir::Barrier()});
    const Stmt body = ir::Block({sums_.Declare(), ir::For(LoopRole::kSerial, k, k_begin, k_end, block, depth_),
                                 StoreTile(first_row, first_column)});
    Stmt nest = ir::For(LoopRole::kParallel, column, Index(0), Index(column_tiles), body);
    nest = ir::For(LoopRole::kParallel, row, Index(0), Index(row_tiles), nest);
    if (parts_ > 1) nest = ir::For(LoopRole::kParallel, part, Index(0), Index(parts_), nest);
    nest = ir::For(LoopRole::kParallel, batch, Index(0), Index(product_.batch), nest);
    std::vector<Stmt> all = {ir::DeclareArray(lhs_block_), ir::DeclareArray(rhs_block_)};
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

  // block[k][outer], zeros beyond the matrix. Neighbouring work-items read neighbours in memory.
  Stmt CopyBlock(const TiledOperand& operand, const ir::BufferRef& from, const ir::BufferRef& block, int64_t width,
                 const Expr& first, int64_t extent, const Expr& k) const {
    return ForItems([&](const Expr& item) {
      const ir::Var i = IndexVar("i", width * depth_);
      const ir::Var outer = ir::MakeVar("outer", kIndex), inner = ir::MakeVar("inner", kIndex);
      const Expr o = operand.k_is_fastest ? Quotient(ir::Ref(i), depth_) : Remainder(ir::Ref(i), width);
      const Expr p = operand.k_is_fastest ? Remainder(ir::Ref(i), depth_) : Quotient(ir::Ref(i), width);
      const ElementPlace place = operand.place(batch_, first + ir::Ref(outer), k + ir::Ref(inner));
      Expr inside = place.inside ? place.inside : ir::Pred(true);
      if (extent % width != 0) inside = ir::And(first + ir::Ref(outer) < Index(extent), inside);
      if (product_.k % depth_ != 0) inside = ir::And(k + ir::Ref(inner) < Index(product_.k), inside);
      const Expr value = ir::Cast(ir::Load(from, place.index, inside), product_.compute_type);
      const Stmt copy = ir::Block(
          {ir::Let(outer, o), ir::Let(inner, p), ir::Store(block, ir::Ref(inner) * width + ir::Ref(outer), value)});
      return ir::For(LoopRole::kSerial, i, item, Index(width * depth_), copy, items_);
    });
  }

  Stmt MultiplyBlock() const {
    return ForItems([&](const Expr& item) {
      const ir::Var p = IndexVar("p", depth_);
      const Expr row = Quotient(item, items_across_), column = Remainder(item, items_across_);
      const int64_t items_down = rows_ / item_rows_;
      return ir::For(
          LoopRole::kSerial, p, Index(0), Index(depth_),
          sums_.Step(
              [&](int64_t r) { return ir::Load(lhs_block_, ir::Ref(p) * rows_ + row + r * items_down); },
              [&](int64_t c) { return ir::Load(rhs_block_, ir::Ref(p) * columns_ + column + c * items_across_); }));
    });
  }

  bool StoresPlainly() const { return !epilogue_ || epilogue_->IsPlain(); }

  Stmt StoreSum(const Expr& row, const Expr& column, const Expr& value) const {
    if (partial_ != nullptr) {
      const Expr first = (part_ * product_.batch + batch_) * product_.m + row;
      return ir::Store(partial_, first * product_.n + column, value);
    }
    return epilogue_->StoreRun(product_.result(batch_, row, column), 1, 1, [&](const Expr&) { return value; });
  }

  // Where the epilogue is more than a store, sums pass through a private array, so that its code is there once.
  Stmt StoreTile(const Expr& first_row, const Expr& first_column) const {
    return ForItems([&](const Expr& item) {
      const Expr row = first_row + Quotient(item, items_across_),
                 column = first_column + Remainder(item, items_across_);
      const int64_t items_down = rows_ / item_rows_;
      const auto store = [&](const Expr& r, const Expr& c, const std::string& name, const Expr& value) {
        const ir::Var at_row = ir::MakeVar("row" + name, kIndex), at_column = ir::MakeVar("column" + name, kIndex);
        const Stmt run = StoreSum(ir::Ref(at_row), ir::Ref(at_column), value);
        const Expr inside = ir::And(ir::Ref(at_row) < Index(product_.m), ir::Ref(at_column) < Index(product_.n));
        return ir::Block({ir::Let(at_row, row + r * items_down), ir::Let(at_column, column + c * items_across_),
                          ir::If(inside, run)});
      };
      std::vector<Stmt> body;
      for (int64_t r = 0; r < item_rows_; ++r) {
        for (int64_t c = 0; c < item_columns_; ++c) {
          if (StoresPlainly())
            body.push_back(store(Index(r), Index(c), fmt::format("_{}_{}", r, c), sums_.At(r, c)));
          else
            body.push_back(ir::Store(staging_, Index(r * item_columns_ + c), sums_.At(r, c)));
        }
      }
      if (!StoresPlainly()) {
        const ir::Var r = IndexVar("r", item_rows_), c = IndexVar("c", item_columns_);
        const Expr value = ir::Load(staging_, ir::Ref(r) * item_columns_ + ir::Ref(c));
        const Stmt inner = ir::For(LoopRole::kSerial, c, Index(0), Index(item_columns_),
                                   store(ir::Ref(r), ir::Ref(c), "_stored", value));
        body.push_back(ir::For(LoopRole::kSerial, r, Index(0), Index(item_rows_), inner));
      }
      return ir::Block(std::move(body));
    });
  }

  const TiledProduct& product_;
  const int64_t items_, items_across_, item_rows_, item_columns_, rows_, columns_;
  const int64_t depth_;  // of a block
  const int64_t part_depth_, parts_;
  KernelParameters parameters_;
  ir::BufferRef lhs_, rhs_, lhs_block_, rhs_block_, staging_, partial_;  // partial_: null without parts
  std::optional<Epilogue> epilogue_;
  RegisterTile sums_;
  Expr batch_, part_;
};

}  // namespace

KernelDraft TiledProductKernel(const TiledProduct& product, const TiledSchedule& schedule) {
  return TiledMultiplication(product, schedule).Emit();
}

}  // namespace hlorun::opencl
