#include "backends/opencl/kernels/multiply.h"

#include <algorithm>

#include "backends/opencl/codegen/cache_line.h"
#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/prefetch_lines.h"
#include "backends/opencl/codegen/transpose_square.h"
#include "backends/opencl/kernels/dot_products.h"
#include "backends/opencl/kernels/epilogue.h"
#include "backends/opencl/kernels/index_math.h"
#include "backends/opencl/kernels/product_extents.h"
#include "backends/opencl/kernels/product_result.h"
#include "backends/opencl/kernels/register_tile.h"
#include "backends/opencl/kernels/section_sums.h"
#include "backends/opencl/kernels/streamed_product.h"
#include "backends/opencl/kernels/turned_panel.h"
#include "backends/opencl/kernels/word_product.h"
#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::kIndex;
using ir::LoopRole;
using ir::Op;
using ir::Stmt;

// Rows of operands in place lie too far apart for the hardware to see a stream: loads run ahead by this much of a
// tile's columns, within these numbers of rows.
constexpr int64_t kBytesAhead = 8192;
constexpr int64_t kFewestRowsAhead = 16, kMostRowsAhead = 64;
constexpr int64_t kLhsRowsAhead = 24;
// Rows of a block of panels that are read ahead of the one that is copied.
constexpr int64_t kCopyRowsAhead = 8;
// With fewer steps a tile ends before the hardware's prefetcher starts.
constexpr int64_t kShortDepth = 256;
// Rows of the next tile that a panel reads ahead at most.
constexpr int64_t kMostStreamsAhead = 4;

class Multiplication {
 public:
  Multiplication(const ProductTask& task, const ProductPlan& plan)
      : task_(task),
        plan_(plan),
        shape_(plan.shape),
        tile_("acc", plan.rows, plan.vectors, {plan.shape.compute_type, static_cast<int>(plan.lanes)}) {
    sizes_ = ProductSizesOf(task, plan.shape);
    AddOperands();
    if (plan.UsesPartialSums()) {
      partial_ = parameters_.Add("partial", shape_.compute_type, plan.k_parts * shape_.batch * shape_.m * shape_.n,
                                 ScratchSlice(plan.PartialOffset(), plan.PartialBytes(), true));
    }
    if (!plan.CombinesParts()) {
      epilogue_.emplace(task.instruction, task.hero, task.aliases, parameters_);
    }
    staging_ = MakeStaging("staging", shape_.compute_type, plan.rows * plan.columns());
    turned_ = MakeStaging("turned", shape_.compute_type, TileStore::TurnedElements(tile_));
  }

  KernelDraft Emit() {
    const ir::Var rows = IndexVar("row_block", plan_.row_blocks()),
                  columns = IndexVar("column_block", plan_.column_blocks());
    const ir::Var batch = IndexVar("batch", shape_.batch), part = IndexVar("part", plan_.k_parts);
    batch_ = ir::Ref(batch);
    part_ = ir::Ref(part);
    const Expr batch_end = ends_.End(sizes_.batch, "batch_end");
    tiles_end_ = ends_.Pieces(sizes_.m, plan_.rows, "rows_end");
    panels_end_ = ends_.Pieces(sizes_.n, plan_.columns(), "columns_end");
    k_end_ = ends_.End(sizes_.k, "depth_end");
    Stmt nest;
    if (plan_.rhs == RhsForm::kBlocks) {
      nest = OwnBlocks(batch, columns);
    } else {
      std::pair<ir::Var, Expr> outer{rows, Index(plan_.row_blocks())}, inner{columns, Index(plan_.column_blocks())};
      Expr row_block = ir::Ref(rows), column_block = ir::Ref(columns);
      if (plan_.ColumnsOutermost()) {
        std::swap(outer, inner);
        column_block =
            InTurn(ir::Ref(columns), plan_.column_blocks(), shape_.n, plan_.panels_per_block * plan_.columns());
      } else {
        row_block = InTurn(ir::Ref(rows), plan_.row_blocks(), shape_.m, plan_.tiles_per_block * plan_.rows);
      }
      const Stmt block =
          Depth([&](const Expr& k_begin, const Expr& k_end) { return Block(row_block, column_block, k_begin, k_end); });
      nest = ParallelNest({{batch, batch_end}, {part, Index(plan_.k_parts)}, outer, inner}, block);
    }
    std::vector<Stmt> body = {ir::DeclareArray(staging_)};
    std::vector<ir::Helper> helpers = WordHelpers(plan_.words);
    if (plan_.rhs == RhsForm::kBlocks && shape_.rhs_transposed)
      helpers = TurnedPanelHelpers(shape_.rhs_type, shape_.compute_type, plan_.lanes, plan_.inline_assembly);
    if ((StoresTurned(shape_) || plan_.mirrors) && epilogue_) {
      body.push_back(ir::DeclareArray(turned_));
      for (ir::Helper& helper : TransposeHelpers(tile_.vector_type(), false, plan_.inline_assembly))
        helpers.push_back(std::move(helper));
    }
    body.push_back(nest);
    return MakeDraft("multiply", parameters_, ends_.Before(ir::Block(std::move(body))), std::move(helpers));
  }

 private:
  void AddOperands() {
    const bool copied_lhs = plan_.lhs != LhsForm::kInPlace, copied_rhs = plan_.rhs != RhsForm::kInPlace;
    const int64_t element = hlo::BytesOf(shape_.compute_type);
    lhs_ = parameters_.Add("lhs", copied_lhs ? plan_.PackedType() : shape_.lhs_type,
                           copied_lhs ? plan_.LhsBytes() / element : shape_.batch * shape_.m * shape_.k,
                           copied_lhs ? ScratchSlice(0, plan_.LhsBytes(), false) : task_.lhs);
    rhs_ = parameters_.Add(
        "rhs", copied_rhs ? plan_.PackedType() : shape_.rhs_type,
        copied_rhs ? plan_.RhsBytes() / element : shape_.batch * shape_.n * shape_.k,
        copied_rhs ? ScratchSlice(plan_.RhsOffset(), plan_.RhsBytes(), plan_.rhs == RhsForm::kBlocks) : task_.rhs);
    if (plan_.HasRowStarts()) {
      starts_ = parameters_.Add("starts", shape_.compute_type, shape_.batch * shape_.m,
                                ScratchSlice(plan_.RowStartOffset(), plan_.RowStartBytes(), false));
    }
    if (plan_.rhs == RhsForm::kBlocks)
      source_ = parameters_.Add("source", shape_.rhs_type, shape_.batch * shape_.n * shape_.k, task_.rhs);
  }

  // The block that comes in this turn. A unit that is given the first half of the groups, as PoCL's are, would have
  // more than half of the work if the smaller last block of `of_block` elements did not come first; of mirrored tiles,
  // of which the last block of columns has the most, the first block and the last come in turns.
  Expr InTurn(const Expr& turn, int64_t blocks, int64_t elements, int64_t of_block) const {
    if (plan_.mirrors) return FromBothEnds(turn, blocks);
    return elements % of_block == 0 ? turn : Index(blocks - 1) - turn;
  }

  // The block of columns that is number `block` of a batch's.
  Expr ColumnBlock(const Expr& block) const {
    const Expr of_batch = Remainder(block, plan_.column_blocks());
    return plan_.mirrors ? FromBothEnds(of_batch, plan_.column_blocks()) : of_batch;
  }

  // Of mirrored tiles: the panel whose rows a tile is of. Panels before it are mirrored, those behind it mirror.
  Expr PanelOfRows(const Expr& tile) const { return Quotient(tile * plan_.rows, plan_.columns()); }
  Stmt IfMirrors(const Expr& tile, const Expr& panel, const Stmt& then) const {
    return ir::If(ir::Compare(Op::kGt, panel, PanelOfRows(tile)), then);
  }

  // Blocks of panels, each copied by the work-group that multiplies it.
  Stmt OwnBlocks(const ir::Var& batch, const ir::Var& column_block) {
    const int64_t blocks = shape_.batch * plan_.column_blocks();
    const ir::Var slot = IndexVar("slot", plan_.slots), block = IndexVar("block", blocks);
    part_ = Index(0);
    slot_ = ir::Ref(slot);
    own_panels_ = ir::Ref(column_block) * plan_.panels_per_block;
    const Expr per_batch = Index(plan_.column_blocks());
    const ir::Var next_run = ir::MakeVar("next_run", kIndex);
    next_run_ = ir::Ref(next_run);
    const Stmt multiply = Depth([&](const Expr& k_begin, const Expr& k_end) {
      return ir::Block({CopyPanels(k_begin, k_end), ir::Let(next_run, NextRun(ir::Ref(block), k_end)),
                        Block(Index(0), ir::Ref(column_block), k_begin, k_end)});
    });
    const Stmt body = ir::Block({ir::Let(batch, ir::Binary(Op::kFloorDiv, ir::Ref(block), per_batch)),
                                 ir::Let(column_block, ColumnBlock(ir::Ref(block))), multiply});
    const Stmt walk = ir::For(LoopRole::kSerial, block, ir::Ref(slot), Index(blocks), body, plan_.slots);
    return ir::For(LoopRole::kParallel, slot, Index(0), Index(plan_.slots), walk);
  }

  // Where element k = 0 of this work-group's panel would be: only what follows k_begin is there.
  Expr OwnPanel(const Expr& panel, const Expr& k_begin) const {
    const Expr place = slot_ * plan_.panels_per_block + (panel - own_panels_);
    return (place * plan_.block_k() - k_begin) * plan_.columns();
  }

  Stmt CopyPanels(const Expr& k_begin, const Expr& k_end) const {
    return shape_.rhs_transposed ? CopyTurnedPanels(k_begin, k_end) : CopyColumns(k_begin, k_end);
  }

  Stmt CopyTurnedPanels(const Expr& k_begin, const Expr& k_end) const {
    const ir::Var number = IndexVar("copy_panel", plan_.panels);
    TurnedPanel panel{source_, rhs_, shape_.compute_type, 0, shape_.n, shape_.k, plan_.columns(), plan_.lanes};
    panel.is_sent_for = true;
    panel.number = ir::Ref(number);
    panel.from = (batch_ * shape_.n + panel.number * panel.width) * shape_.k;
    panel.to = OwnPanel(panel.number, k_begin);
    const bool even = shape_.k % plan_.lanes == 0;
    const Expr end = Bounded(own_panels_, plan_.panels_per_block, plan_.panels);
    return Loop(number, own_panels_, end, CopyTurned(panel, k_begin, k_end, even));
  }

  // Where what this unit copies next begins in the source: the next depth of this block, the next block of this group,
  // or, as units take runs of groups, the first of the next group.
  Expr NextRun(const Expr& block, const Expr& k_end) const {
    const int64_t blocks = shape_.batch * plan_.column_blocks();
    const auto start = [&](const Expr& of_block, const Expr& k) {
      const Expr batch = Quotient(of_block, plan_.column_blocks()),
                 column = ColumnBlock(of_block) * (plan_.panels_per_block * plan_.columns());
      return shape_.rhs_transposed ? (batch * shape_.n + column) * shape_.k + k
                                   : (batch * shape_.k + k) * shape_.n + column;
    };
    const Expr next = block + plan_.slots, next_group = ir::Min(slot_ + 1, Index(plan_.slots - 1));
    Expr other = start(ir::Select(next < Index(blocks), next, next_group), Index(0));
    if (plan_.k_block == 0) return other;
    return ir::Select(ir::Compare(Op::kLt, k_end, part_end_), start(block, k_end), other);
  }

  // Each tile's first steps send for their share of it, a line each.
  Stmt SendForNextRun(const Expr& tile, const Expr& panel, const Expr& step) const {
    if (!plan_.SendsForBlocks()) return nullptr;
    const int64_t line = kLineBytes / hlo::BytesOf(shape_.rhs_type), passes = plan_.tiles * plan_.panels_per_block;
    int64_t runs = plan_.block_k(), run = plan_.panels_per_block * plan_.columns();
    if (shape_.rhs_transposed) std::swap(runs, run);
    const int64_t apart = shape_.rhs_transposed ? shape_.k : shape_.n;
    const int64_t lines_of_run = CeilDiv(run, line), share = CeilDiv(lines_of_run * runs, passes);
    const Expr number = (tile * plan_.panels_per_block + (panel - own_panels_)) * share + step;
    const Expr at = next_run_ + Quotient(number, lines_of_run) * apart + Remainder(number, lines_of_run) * line;
    return ir::If(ir::Compare(Op::kLt, step, Index(share)), ir::Prefetch(source_, at, ir::CacheLevel::kSecond));
  }

  // Row by row.
  Stmt CopyColumns(const Expr& k_begin, const Expr& k_end) const {
    const ir::Var k = IndexVar("copy_k", shape_.k), panel = IndexVar("copy_panel", plan_.panels);
    const int64_t width = plan_.columns(), tail = shape_.n % width;
    const Expr row = (batch_ * shape_.k + ir::Ref(k)) * shape_.n, column = ir::Ref(panel) * width;
    const Expr to = OwnPanel(ir::Ref(panel), k_begin) + ir::Ref(k) * width;
    const auto copy = [&](bool edge) {
      std::vector<Stmt> body;
      for (int64_t v = 0; v < plan_.vectors; ++v) {
        const auto ramp = [&](const Expr& at) { return ir::Ramp(at + v * plan_.lanes, static_cast<int>(plan_.lanes)); };
        const Expr inside = edge ? ir::Compare(Op::kLt, ramp(column), Index(shape_.n)) : nullptr;
        body.push_back(ir::Prefetch(source_, row + column + (kCopyRowsAhead * shape_.n + v * plan_.lanes)));
        body.push_back(ir::Store(rhs_, ramp(to), Read(source_, ramp(row + column), inside)));
      }
      return ir::Block(std::move(body));
    };
    const Stmt either =
        tail == 0 ? copy(false) : ir::If(ir::Ref(panel) < Index(shape_.n / width), copy(false), copy(true));
    const Expr end = Bounded(own_panels_, plan_.panels_per_block, plan_.panels);
    return Loop(k, k_begin, k_end, Loop(panel, own_panels_, end, either));
  }

  // The part of k of this work-group, in blocks where the plan says so.
  template <typename Body>
  Stmt Depth(const Body& body) {
    const int64_t depth = plan_.part_k();
    const bool even = shape_.k % depth == 0;
    const Expr part_begin = plan_.k_parts == 1 ? Index(0) : part_ * depth;
    const Expr part_end = even ? part_begin + depth : ir::Min(part_begin + depth, Index(shape_.k));
    if (sizes_.k.extent) return SizedDepth(body);
    part_begin_ = part_begin;
    part_end_ = part_end;
    if (plan_.k_block == 0) return body(part_begin, part_end);
    const ir::Var block = ir::MakeIndex("k_block", 0, shape_.k - 1, kIndex);
    const Expr end = ir::Min(ir::Ref(block) + plan_.k_block, part_end);
    return ir::For(LoopRole::kSerial, block, part_begin, part_end, body(ir::Ref(block), end), plan_.k_block);
  }

  // Equal parts of the depth that there is. Each walks one block at least, be it empty, so that all sums are stored.
  template <typename Body>
  Stmt SizedDepth(const Body& body) {
    const ir::Var begin = ir::MakeIndex("part_begin", 0, shape_.k, kIndex),
                  end = ir::MakeIndex("part_end", 0, shape_.k, kIndex);
    const Expr depth = ir::Binary(Op::kFloorDiv, k_end_ + (plan_.k_parts - 1), Index(plan_.k_parts));
    part_begin_ = ir::Ref(begin);
    part_end_ = ir::Ref(end);
    std::vector<Stmt> statements = {ir::Let(begin, ir::Min(part_ * depth, k_end_)),
                                    ir::Let(end, ir::Min(ir::Ref(begin) + depth, k_end_))};
    if (plan_.k_block == 0) {
      statements.push_back(body(ir::Ref(begin), ir::Ref(end)));
    } else {
      const ir::Var block = ir::MakeIndex("k_block", 0, shape_.k - 1, kIndex);
      const Expr block_end = ir::Min(ir::Ref(block) + plan_.k_block, ir::Ref(end));
      statements.push_back(ir::For(LoopRole::kSerial, block, ir::Ref(begin), ir::Max(ir::Ref(end), ir::Ref(begin) + 1),
                                   body(ir::Ref(block), block_end), plan_.k_block));
    }
    return ir::Block(std::move(statements));
  }

  // The share of a block of tiles or panels: what the plan says, or an equal part of what is there.
  static std::pair<Expr, Expr> Share(const SizedLoop& loop, const Expr& block, int64_t per_block, int64_t count,
                                     const Expr& pieces) {
    if (!loop.extent) return {block * per_block, Bounded(block * per_block, per_block, count)};
    const int64_t blocks = CeilDiv(count, per_block);
    const Expr share = ir::Binary(Op::kFloorDiv, pieces + (blocks - 1), Index(blocks));
    return {block * share, ir::Min(block * share + share, pieces)};
  }

  // All tiles of a block of rows, each with all panels of a block of columns: the tile's rows of lhs stay in the first
  // cache, the panels in the second, and a row of the result is written from left to right.
  Stmt Block(const Expr& row_block, const Expr& column_block, const Expr& k_begin, const Expr& k_end) {
    const ir::Var tile = IndexVar("tile", plan_.tiles), panel = IndexVar("panel", plan_.panels);
    const auto [first_tile, end_tile] = Share(sizes_.m, row_block, plan_.tiles_per_block, plan_.tiles, tiles_end_);
    auto [first_panel, end_panel] = Share(sizes_.n, column_block, plan_.panels_per_block, plan_.panels, panels_end_);
    if (plan_.mirrors) first_panel = ir::Max(first_panel, PanelOfRows(ir::Ref(tile)));
    const ir::Var row = ir::MakeIndex("first_row", 0, shape_.m - 1, kIndex);
    const Expr nominal = ir::Ref(tile) * plan_.rows;
    const bool even = shape_.m % plan_.rows == 0;
    std::vector<Stmt> body = {ir::Let(row, even ? nominal : ir::Min(nominal, Index(shape_.m - plan_.rows)))};
    // Rows that the tile before has stored.
    const Expr done = even ? Index(0) : nominal - ir::Ref(row);
    const auto emit = [&](int64_t columns) {
      return Panel(ir::Ref(tile), ir::Ref(row), done, ir::Ref(panel), columns, k_begin, k_end);
    };
    const int64_t width = plan_.columns(), tail = shape_.n % width, whole = shape_.n / width;
    if (tail == 0) {
      body.push_back(Loop(panel, first_panel, end_panel, emit(width)));
    } else if (whole == 0) {
      body.push_back(Loop(panel, first_panel, end_panel, emit(tail)));
    } else {
      const Stmt either = ir::If(ir::Ref(panel) < Index(whole), emit(width), emit(tail));
      body.push_back(Loop(panel, first_panel, end_panel, either));
    }
    return Loop(tile, first_tile, end_tile, ir::Block(std::move(body)));
  }

  static Expr Bounded(const Expr& first, int64_t count, int64_t limit) {
    return limit % count == 0 ? first + count : ir::Min(first + count, Index(limit));
  }

  // The rows of lhs in place that the next tile reads, which the hardware finds too late: one stream for each row, and
  // a tile of few steps ends before they start.
  Stmt PrefetchNextTile(const Expr& lhs_first, const Expr& panel, const Expr& k) const {
    if (plan_.lhs == LhsForm::kPanels || shape_.lhs_transposed || plan_.tiles == 1) return nullptr;
    if (plan_.part_k() <= kShortDepth) {
      const int64_t steps = kLineBytes / hlo::BytesOf(shape_.compute_type);
      // A cache line's worth of steps reads one line of each row.
      if (plan_.rows > steps) return nullptr;
      const Expr row = ir::Binary(Op::kFloorMod, k, Index(steps));
      return ir::Prefetch(lhs_, lhs_first + (row + plan_.rows) * plan_.lhs_stride() + (k - row));
    }
    if (plan_.rhs != RhsForm::kPanels || !plan_.lhs_is_far) return nullptr;
    // Each panel reads its share of the rows, to the end.
    const int64_t share = std::min(CeilDiv(plan_.rows, plan_.panels_per_block), kMostStreamsAhead);
    const Expr row = ir::Binary(Op::kFloorMod, panel, Index(plan_.panels_per_block)) * share + plan_.rows;
    std::vector<Stmt> streams;
    for (int64_t r = 0; r < share; ++r)
      streams.push_back(ir::Prefetch(lhs_, lhs_first + (row + r) * plan_.lhs_stride() + k, ir::CacheLevel::kSecond));
    return ir::Block(std::move(streams));
  }

  // The sums of a register tile, and where its block of depth begins.
  struct Place {
    Expr tile, row, panel;
    int64_t columns;  // of the panel's that exist
    Expr block_begin;
  };

  // One register tile: `columns` of the panel's columns exist.
  Stmt Panel(const Expr& tile, const Expr& row, const Expr& done, const Expr& panel, int64_t columns,
             const Expr& k_begin, const Expr& k_end) {
    const int64_t vectors = CeilDiv(columns, plan_.lanes);
    const RegisterTile narrow("acc", plan_.rows, vectors, {shape_.compute_type, static_cast<int>(plan_.lanes)});
    const RegisterTile& registers = vectors == plan_.vectors ? tile_ : narrow;
    std::vector<Stmt> body = {registers.Declare()};
    const Expr first_column = panel * plan_.columns();
    if (starts_) {
      const Stmt fill = registers.Fill([&](int64_t r) { return ir::Load(starts_, batch_ * shape_.m + row + r); });
      body.push_back(plan_.k_parts == 1 ? fill : ir::If(ir::Compare(Op::kEq, part_, Index(0)), fill));
    }
    if (partial_ && plan_.k_block > 0) {
      body.push_back(
          ir::If(ir::Compare(Op::kGt, k_begin, part_begin_), LoadPartial(registers, row, first_column, columns)));
    }
    const Expr is_last_block = partial_ ? ir::Compare(Op::kEq, k_end, part_end_) : nullptr;
    const Place place{tile, row, panel, columns, k_begin};
    const auto send = [&](const Expr& step) { return SendForResult(step, place, is_last_block); };
    const auto steps = [&](const Expr& begin, const Expr& end) { return Steps(registers, place, begin, end, send); };
    if (plan_.GoesBySections()) {
      body.push_back(registers.Store(staging_, registers.RowByRow()));
      body.push_back(SumSections(registers, staging_, k_begin, k_end, plan_.section, shape_.k, steps));
    } else {
      body.push_back(steps(k_begin, k_end));
    }
    const auto partial = [&] { return StorePartial(registers, row, first_column, columns, done); };
    const auto result = [&] { return StoreResult(registers, place, done); };
    if (!epilogue_) {
      body.push_back(partial());
    } else if (!partial_) {
      body.push_back(result());
    } else {
      body.push_back(ir::If(is_last_block, result(), partial()));
    }
    return ir::Block(std::move(body));
  }

  TileStore::Index IndexFrom(const Expr& row, const Expr& first_column) const {
    return [this, row, first_column](const Expr& r, const Expr& c) {
      return ResultIndex(task_, shape_, batch_, row + r, first_column + c);
    };
  }

  // The same of what lies opposite, behind the diagonal.
  TileStore::Index MirroredFrom(const Expr& row, const Expr& first_column) const {
    return [this, row, first_column](const Expr& r, const Expr& c) {
      return ResultIndex(task_, shape_, batch_, first_column + c, row + r);
    };
  }

  Stmt StoreResult(const RegisterTile& registers, const Place& place, const Expr& done) {
    const Expr first_column = place.panel * plan_.columns();
    const TileStore::Index index = IndexFrom(place.row, first_column);
    const TileStore store(*epilogue_);
    if (StoresTurned(shape_)) return store.EmitTurned(registers, staging_, turned_, done, place.columns, index);
    Stmt stored = store.Emit(registers, staging_, done, Index(plan_.rows), place.columns, index);
    if (!plan_.mirrors) return stored;
    // The tile that begins early, whose first rows are the one before's, is the last, and mirrors nothing.
    const Stmt mirrored =
        store.EmitTurned(registers, staging_, turned_, Index(0), place.columns, MirroredFrom(place.row, first_column));
    return ir::Block({stored, IfMirrors(place.tile, place.panel, mirrored)});
  }

  Expr PartialIndex(const Expr& row, const Expr& column) const {
    return ((part_ * shape_.batch + batch_) * shape_.m + row) * shape_.n + column;
  }

  // Copies between the partial sums and the staging array, `columns` of each row.
  Stmt MovePartial(const RegisterTile& registers, const Expr& row, const Expr& first_column, int64_t columns,
                   const Expr& first, bool load) {
    const ir::Var r = IndexVar("row", plan_.rows);
    std::vector<Stmt> body;
    int64_t piece = plan_.lanes;
    for (int64_t c = 0; c < columns; c += piece) {
      while (piece > columns - c) piece /= 2;
      const Expr inner = ir::Ramp(ir::Ref(r) * registers.columns() + c, static_cast<int>(piece));
      const Expr outer = ir::Ramp(PartialIndex(row + ir::Ref(r), first_column + c), static_cast<int>(piece));
      body.push_back(load ? ir::Store(staging_, inner, ir::Load(partial_, outer))
                          : ir::Store(partial_, outer, ir::Load(staging_, inner)));
    }
    return Loop(r, first, Index(plan_.rows), ir::Block(std::move(body)));
  }

  Stmt LoadPartial(const RegisterTile& registers, const Expr& row, const Expr& first_column, int64_t columns) {
    if (columns == registers.columns()) {
      return registers.Load(
          partial_, [&](int64_t r, int64_t v) { return PartialIndex(row + r, first_column + v * plan_.lanes); });
    }
    return ir::Block({MovePartial(registers, row, first_column, columns, Index(0), true),
                      registers.Load(staging_, registers.RowByRow())});
  }

  // Rows that the tile before has stored must stay as they are: they hold this block's sum already.
  Stmt StorePartial(const RegisterTile& registers, const Expr& row, const Expr& first_column, int64_t columns,
                    const Expr& done) {
    Stmt staged = ir::Block({registers.Store(staging_, registers.RowByRow()),
                             MovePartial(registers, row, first_column, columns, done, false)});
    if (columns != registers.columns()) return staged;
    const Stmt direct = registers.Store(
        partial_, [&](int64_t r, int64_t v) { return PartialIndex(row + r, first_column + v * plan_.lanes); });
    return ir::If(ir::Compare(Op::kEq, done, Index(0)), direct, staged);
  }

  // One row or turned column of the result in each of the first steps; `is_last_block` of the depth: null where there
  // is one.
  Stmt SendForResult(const Expr& step, const Place& place, const Expr& is_last_block) const {
    if (!epilogue_ || !plan_.result_is_far) return nullptr;
    const Expr first_column = place.panel * plan_.columns();
    const bool turned = StoresTurned(shape_);
    const auto send = [&](bool is_turned, const TileStore::Index& index) {
      const RunIndex at = is_turned ? index(Index(0), step) : index(step, Index(0));
      const Expr wanted = ir::Compare(Op::kLt, step, Index(is_turned ? place.columns : plan_.rows));
      return ir::If(is_last_block ? ir::And(is_last_block, wanted) : wanted,
                    epilogue_->SendForRun(at, is_turned ? plan_.rows : place.columns));
    };
    Stmt sent = send(turned, IndexFrom(place.row, first_column));
    if (!plan_.mirrors) return sent;
    return ir::Block({sent, IfMirrors(place.tile, place.panel, send(true, MirroredFrom(place.row, first_column)))});
  }

  // acc += lhs * rhs over begin .. end.
  Stmt Steps(const RegisterTile& registers, const Place& place, const Expr& begin, const Expr& end,
             const std::function<Stmt(const Expr& step)>& send) {
    const bool whole_vectors = plan_.rhs != RhsForm::kInPlace || place.columns % plan_.lanes == 0;
    if (whole_vectors) return StepLoop(registers, place, begin, end, false, send);
    // The last rows of rhs in place end before the last vector does.
    const int64_t touched = (shape_.n / plan_.columns()) * plan_.columns() + registers.columns();
    const int64_t careful = std::min(shape_.k, CeilDiv(touched, shape_.n) - 1);
    const Expr safe_end = ir::Max(begin, ir::Min(end, Index(shape_.k - careful)));
    return ir::Block({StepLoop(registers, place, begin, safe_end, false, send),
                      StepLoop(registers, place, safe_end, end, true, send)});
  }

  Stmt StepLoop(const RegisterTile& registers, const Place& place, const Expr& begin, const Expr& end, bool careful,
                const std::function<Stmt(const Expr& step)>& send) {
    const auto& [tile, row, panel, columns, block_begin] = place;
    const ir::Var k = IndexVar("k", shape_.k);
    const ir::Var lhs_base = ir::MakeVar("lhs_at", kIndex), rhs_base = ir::MakeVar("rhs_at", kIndex);
    const auto [lhs_first, lhs_row, lhs_k] = LhsStrides(tile, row);
    const bool panels = plan_.rhs != RhsForm::kInPlace;
    const int64_t rhs_k = panels ? plan_.columns() : shape_.n;
    const Expr rhs_first = plan_.rhs == RhsForm::kBlocks ? OwnPanel(panel, block_begin)
                           : panels ? (batch_ * plan_.panels + panel) * (shape_.k * plan_.columns())
                                    : batch_ * (shape_.k * shape_.n) + panel * plan_.columns();
    std::vector<Stmt> body = {ir::Let(lhs_base, lhs_first + ir::Ref(k) * lhs_k),
                              ir::Let(rhs_base, rhs_first + ir::Ref(k) * rhs_k),
                              PrefetchNextTile(lhs_first, panel, ir::Ref(k))};
    if (!careful) body.push_back(send(ir::Ref(k) - block_begin));
    body.push_back(SendForNextRun(tile, panel, ir::Ref(k) - block_begin));
    if (panels) body.push_back(registers.ReadAhead(rhs_, ir::Ref(rhs_base)));
    if (!panels && !careful) {
      const int64_t run_bytes = registers.columns() * hlo::BytesOf(shape_.rhs_type);
      const int64_t rows_ahead = std::clamp(kBytesAhead / run_bytes, kFewestRowsAhead, kMostRowsAhead);
      if (!plan_.rhs_stays)
        body.push_back(PrefetchLines(rhs_, ir::Ref(rhs_base) + rows_ahead * rhs_k, registers.columns()));
      PrefetchNextBlock(tile, ir::Ref(rhs_base), registers.vectors(), body);
    }
    if (lhs_k != 1 && plan_.lhs == LhsForm::kInPlace) {
      body.push_back(ir::Prefetch(lhs_, ir::Ref(lhs_base) + kLhsRowsAhead * lhs_k));
    }
    const Expr row_end = batch_ * (shape_.k * shape_.n) + (ir::Ref(k) + 1) * rhs_k;
    const RegisterTile::Multiplier words{hlo::ElementType::kU32,
                                         [&](const Expr& sum, const Expr& row, const Expr& column) {
                                           return DotWords(plan_.words.kind, sum, row, column);
                                         }};
    body.push_back(
        registers.Step([&, stride = lhs_row](int64_t r) { return Read(lhs_, ir::Ref(lhs_base) + r * stride); },
                       [&](int64_t v) {
                         const Expr at = ir::Ramp(ir::Ref(rhs_base) + v * plan_.lanes, static_cast<int>(plan_.lanes));
                         return Read(rhs_, at, careful ? ir::Compare(Op::kLt, at, row_end) : nullptr);
                       },
                       plan_.words ? &words : nullptr));
    return Loop(k, begin, end, ir::Block(std::move(body)));
  }

  // Rows of rhs in place that are the next work-group's: each tile of a column of tiles reads its share of their lines,
  // so that memory is busy while tiles multiply what lies in the caches.
  void PrefetchNextBlock(const Expr& tile, const Expr& rhs_base, int64_t vectors, std::vector<Stmt>& body) const {
    if (plan_.tiles == 1 || plan_.column_blocks() == 1) return;
    const Expr next = rhs_base + plan_.panels_per_block * plan_.columns() + tile * plan_.lanes;
    for (int64_t v = 0; v < vectors; v += plan_.tiles) body.push_back(ir::Prefetch(rhs_, next + v * plan_.lanes));
  }

  Expr Read(const ir::BufferRef& buffer, const Expr& at, const Expr& predicate = nullptr) const {
    const Expr element = ir::Load(buffer, at, predicate);
    return plan_.words ? element : ir::Cast(element, shape_.compute_type);
  }

  struct Strides {
    Expr first;
    int64_t row, k;
  };
  Strides LhsStrides(const Expr& tile, const Expr& row) const {
    if (plan_.lhs == LhsForm::kPanels) {
      return {(batch_ * plan_.tiles + tile) * (shape_.k * plan_.rows), 1, plan_.rows};
    }
    if (shape_.lhs_transposed) return {batch_ * (shape_.m * shape_.k) + row, 1, shape_.m};
    const int64_t stride = plan_.lhs_stride();
    return {(batch_ * shape_.m + row) * stride, stride, 1};
  }

  const ProductTask& task_;
  const ProductPlan& plan_;
  const ProductShape& shape_;
  KernelParameters parameters_;
  ir::BufferRef lhs_, rhs_, source_, partial_, staging_, turned_, starts_;
  std::optional<Epilogue> epilogue_;
  RegisterTile tile_;
  ProductSizes sizes_;
  LoopEnds ends_{parameters_};
  Expr batch_, part_, part_begin_, part_end_, slot_, own_panels_, next_run_, tiles_end_, panels_end_, k_end_;
};

// The copies of operands that the plan asks for.
std::vector<KernelDraft> PackingKernels(const ProductTask& task, const ProductPlan& plan) {
  const ProductShape& shape = plan.shape;
  const ProductSizes sizes = ProductSizesOf(task, shape);
  std::vector<KernelDraft> kernels;
  if (plan.lhs != LhsForm::kInPlace) {
    const ArgumentRef out = ScratchSlice(0, plan.LhsBytes(), true);
    const MatrixSource source{task.lhs,
                              shape.lhs_type,
                              shape.batch,
                              shape.lhs_transposed ? shape.k : shape.m,
                              shape.lhs_transposed ? shape.m : shape.k,
                              shape.lhs_transposed ? sizes.k : sizes.m,
                              shape.lhs_transposed ? sizes.m : sizes.k};
    const auto copy = [&] {
      if (plan.lhs == LhsForm::kPanels) return PackTiles(source, shape.compute_type, plan.lanes, plan.rows, out);
      if (plan.lhs == LhsForm::kSpread)
        return SpreadRows(source, shape.compute_type, plan.lanes, plan.lhs_stride(), out);
      return Convert(source, shape.compute_type, plan.lanes, out);
    };
    kernels.push_back(copy());
  }
  if (plan.rhs == RhsForm::kPanels) {
    const ArgumentRef out = ScratchSlice(plan.RhsOffset(), plan.RhsBytes(), true);
    const MatrixSource source{task.rhs,
                              shape.rhs_type,
                              shape.batch,
                              shape.rhs_transposed ? shape.n : shape.k,
                              shape.rhs_transposed ? shape.k : shape.n,
                              shape.rhs_transposed ? sizes.n : sizes.k,
                              shape.rhs_transposed ? sizes.k : sizes.n};
    const uint32_t flip = FlipOfWords(plan.words.kind);
    if (plan.words && !shape.rhs_transposed) {
      const int64_t rows = shape.k * plan.words.elements;
      const MatrixSource elements{task.rhs, plan.words.element, shape.batch, rows, shape.n, {rows}, sizes.n};
      kernels.push_back(PackColumnWords(elements, plan.lanes, plan.columns(), flip, out));
    } else if (shape.rhs_transposed) {
      kernels.push_back(
          PackTransposed(source, plan.PackedType(), plan.lanes, plan.columns(), flip, plan.inline_assembly, out));
    } else {
      kernels.push_back(PackColumns(source, shape.compute_type, plan.lanes, plan.columns(), out));
    }
  }
  if (plan.HasRowStarts()) kernels.push_back(RowStartKernel(task, plan));
  return kernels;
}

}  // namespace

std::vector<KernelDraft> ProductKernels(const ProductTask& task, const ProductPlan& plan) {
  if (plan.dot_products) return {DotProductKernel(task, plan)};
  if (plan.streams) return {StreamKernel(task, plan), CombineKernel(task, plan)};
  std::vector<KernelDraft> kernels = PackingKernels(task, plan);
  kernels.push_back(MultiplyKernel(task, plan));
  if (plan.CombinesParts()) kernels.push_back(CombineKernel(task, plan));
  return kernels;
}

KernelDraft MultiplyKernel(const ProductTask& task, const ProductPlan& plan) {
  return Multiplication(task, plan).Emit();
}

KernelDraft CombineKernel(const ProductTask& task, const ProductPlan& plan) {
  const ProductShape& shape = plan.shape;
  KernelParameters parameters;
  const int64_t elements = shape.batch * shape.m * shape.n;
  const ir::BufferRef partial = parameters.Add("partial", shape.compute_type, plan.k_parts * elements,
                                               ScratchSlice(plan.PartialOffset(), plan.PartialBytes(), false));
  const Epilogue epilogue(task.instruction, task.hero, task.aliases, parameters);
  // A run goes along one of the result's last dimension.
  const bool turned = StoresTurned(shape);
  const ir::Var batch = IndexVar("batch", shape.batch), line = IndexVar("line", turned ? shape.n : shape.m);
  const Expr none = Index(0), row = turned ? none : ir::Ref(line), column = turned ? ir::Ref(line) : none;
  const Expr first = (ir::Ref(batch) * shape.m + row) * shape.n + column;
  const RunIndex at = ResultIndex(task, shape, ir::Ref(batch), row, column);
  const Stmt run = epilogue.StoreRun(at, turned ? shape.m : shape.n, plan.lanes, [&](const Expr& place) {
    const Expr from = first + (turned ? place * shape.n : place);
    Expr sum = ir::Load(partial, from);
    for (int64_t part = 1; part < plan.k_parts; ++part) sum = sum + ir::Load(partial, from + part * elements);
    return sum;
  });
  const ProductSizes sizes = ProductSizesOf(task, shape);
  LoopEnds ends(parameters);
  const Expr batch_end = ends.End(sizes.batch, "batch_end"),
             lines_end = ends.End(turned ? sizes.n : sizes.m, "lines_end");
  return MakeDraft("combine", parameters, ends.Before(ParallelNest({{batch, batch_end}, {line, lines_end}}, run)));
}

}  // namespace hlorun::opencl
