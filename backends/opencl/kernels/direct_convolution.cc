#include "backends/opencl/kernels/direct_convolution.h"

#include <algorithm>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/kernels/epilogue.h"
#include "backends/opencl/kernels/index_math.h"
#include "backends/opencl/kernels/input_element.h"
#include "backends/opencl/kernels/loop_ends.h"
#include "backends/opencl/kernels/register_tile.h"
#include "backends/opencl/kernels/section_sums.h"
#include "backends/opencl/kernels/word_product.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::kIndex;
using ir::LoopRole;
using ir::Op;
using ir::Stmt;

// A panel of weights of this size stays in any device's first cache.
constexpr int64_t kPanelBytesKept = 24 << 10;
// Sections of a row of the window, where sums go by sections: equal ones of at most so many steps.
constexpr int64_t kMostSectionSteps = 2 * kSectionSteps;
// Of a pair of bf16.
constexpr int64_t kBitsOfHalf = 16, kLowerHalf = 0xffff;

class DirectConvolution {
 public:
  DirectConvolution(const ConvolutionTask& task, const ConvolutionPlan& plan)
      : task_(task),
        plan_(plan),
        shape_(plan.shape),
        pitch_((plan.reads_in_place ? plan.shape.columns.in : plan.BufferColumns()) * plan.shape.channels),
        tile_row_((plan.reads_in_place ? plan.shape.rows.stride : plan.shape.rows.tile_stride()) * pitch_),
        tile_column_((plan.reads_in_place ? plan.shape.columns.stride : plan.shape.columns.tile_stride()) *
                     plan.shape.channels) {
    const int64_t input = shape_.batch * shape_.rows.in * shape_.columns.in * PixelElements();
    const int64_t element = hlo::BytesOf(shape_.compute_type);
    input_ = parameters_.Add("input", shape_.input_type, input, task.input);
    weights_ = parameters_.Add("weights", plan.CopiedType(), plan.WeightBytes() / element,
                               ScratchSlice(0, plan.WeightBytes(), false));
    buffer_ = plan.reads_in_place ? input_
                                  : parameters_.Add("buffer", plan.CopiedType(), plan.BufferBytes() / element,
                                                    ScratchSlice(plan.WeightBytes(), plan.BufferBytes(), true));
    epilogue_.emplace(task.instruction, task.hero, task.aliases, parameters_);
    staging_ = MakeStaging("staging", shape_.compute_type, TilePixels() * plan.width());
  }

  KernelDraft Emit() {
    const ir::Var group = IndexVar("group", plan_.groups), block = IndexVar("block", plan_.blocks());
    const ir::Var image = IndexVar("image", shape_.batch), panel_block = IndexVar("panel_block", plan_.panel_blocks());
    const ir::Var first_row = IndexVar("first_row", shape_.rows.out);
    const ir::Var first_new = IndexVar("first_new_row", shape_.rows.out);
    image_ = ir::Ref(image);
    const int64_t blocks_of_group = plan_.panel_blocks() / shape_.groups;
    group_ = shape_.groups == 1 ? Index(0) : ir::Binary(Op::kFloorDiv, ir::Ref(panel_block), Index(blocks_of_group));
    first_new_row_ = ir::Ref(first_new);
    buffer_at_ = ir::Ref(group) * plan_.BufferElements();
    const auto div = [](const Expr& x, int64_t by) { return ir::Binary(Op::kFloorDiv, x, Index(by)); };
    const auto mod = [](const Expr& x, int64_t by) { return ir::Binary(Op::kFloorMod, x, Index(by)); };
    const passes::KernelExtents extents = passes::ExtentsOf(task_.instruction);
    const int64_t rank = task_.hero.shape().rank();
    LoopEnds ends(parameters_);
    const SizedLoop images{shape_.batch, extents.Of(0, 0)};
    const SizedLoop rows{shape_.rows.out, shape_.spatial_rank == 2 ? extents.Of(0, 1) : std::nullopt};
    rows_end_ = ends.End(rows, "rows_end");
    columns_end_ = ends.End({shape_.columns.out, extents.Of(0, rank - 2)}, "columns_end");
    const Expr row_blocks = rows.extent ? ir::Max(ends.Pieces(rows, plan_.rows_per_block, "row_blocks_end"), Index(1))
                                        : Index(plan_.row_blocks());
    const Expr some_rows = ir::Min(rows_end_, Index(1));
    const Expr blocks = images.extent || rows.extent
                            ? ends.End(images, "images_end") * row_blocks * some_rows * plan_.panel_blocks()
                            : Index(plan_.blocks());
    const Expr row_block = ir::Binary(Op::kFloorMod, div(ir::Ref(block), plan_.panel_blocks()), row_blocks);
    const Stmt body =
        ir::Block({ir::Let(panel_block, mod(ir::Ref(block), plan_.panel_blocks())),
                   ir::Let(first_new, row_block * plan_.rows_per_block),
                   ir::Let(first_row, plan_.HasRaggedBlocks()
                                          ? ir::Min(ir::Ref(first_new), Index(shape_.rows.out - plan_.rows_per_block))
                                          : ir::Ref(first_new)),
                   ir::Let(image, ir::Binary(Op::kFloorDiv, ir::Ref(block), row_blocks * plan_.panel_blocks())),
                   plan_.reads_in_place ? nullptr : CopyRows(ir::Ref(first_row)),
                   Tiles(ir::Ref(first_row), ir::Ref(panel_block))});
    const Stmt walk = Loop(block, ir::Ref(group), blocks, body, plan_.groups);
    const Stmt nest = ir::For(LoopRole::kParallel, group, Index(0), Index(plan_.groups), walk);
    return MakeDraft("convolution", parameters_, ends.Before(ir::Block({ir::DeclareArray(staging_), nest})),
                     WordHelpers(plan_.words));
  }

 private:
  // Of the input: the channels of all groups.
  int64_t PixelElements() const { return shape_.groups * shape_.channels; }
  int64_t TilePixels() const { return plan_.tile_rows * plan_.tile_columns; }

  // What a row of the buffer holds of `d`: elements copied first .. end, `step` places apart, from input element `from`
  // on.
  struct Run {
    int64_t first, end, step, from;
  };
  Run RunOf(const ConvolutionDimension& d, int64_t span) const {
    if (d.Subsampled()) {
      // Place j holds element j * stride - low.
      const int64_t first = std::min(span, std::max<int64_t>(0, CeilDiv(d.low, d.stride)));
      const int64_t end = std::clamp<int64_t>(CeilDiv(d.in + d.low, d.stride), first, span);
      return {first, end, 1, first * d.stride - d.low};
    }
    const int64_t skipped = d.low < 0 ? CeilDiv(-d.low, d.base_dilation) : 0;
    const int64_t first = d.low + skipped * d.base_dilation;
    const int64_t last = d.low + (d.in - 1) * d.base_dilation;
    const int64_t end = std::min(span, last + 1);
    return {std::min(first, span), std::max(end, std::min(first, span)), d.base_dilation, skipped};
  }

  Stmt Zero(const Expr& at, int64_t count) const {
    if (count <= 0) return nullptr;
    const ir::Var i = IndexVar("zero", count);
    return ir::For(LoopRole::kVector, i, Index(0), Index(count),
                   ir::Store(buffer_, at + ir::Ref(i), ir::Zero({plan_.CopiedType(), 1})), 1,
                   static_cast<int>(plan_.lanes));
  }
  // Of a run whose pairs overlap: each element and, in the upper half, the one behind it; what stands before the first,
  // if anything, gets that.
  Stmt CopyPairs(const Expr& to, const Expr& from, int64_t count, bool is_behind_another) const {
    const ir::Var i = IndexVar("copy", count);
    const auto element = [&](const Expr& at) { return ir::Cast(ir::Load(input_, at), plan_.CopiedType()); };
    const auto upper = [&](const Expr& x) { return ir::Binary(Op::kShl, x, ir::Int(kBitsOfHalf, x->type)); };
    const Expr at = from + ir::Ref(i);
    const Stmt whole = ir::Store(buffer_, to + ir::Ref(i), ir::Binary(Op::kOr, element(at), upper(element(at + 1))));
    return ir::Block(
        {is_behind_another ? ir::Store(buffer_, to - 1, upper(element(from))) : nullptr,
         ir::For(LoopRole::kVector, i, Index(0), Index(count - 1), whole, 1, static_cast<int>(plan_.lanes)),
         ir::Store(buffer_, to + (count - 1), element(from + (count - 1)))});
  }
  Stmt Copy(const Expr& to, const Expr& from, int64_t count) const {
    const ir::Var i = IndexVar("copy", count);
    const Expr value = ir::Cast(ir::Load(input_, from + ir::Ref(i)), plan_.CopiedType());
    return ir::For(LoopRole::kVector, i, Index(0), Index(count), ir::Store(buffer_, to + ir::Ref(i), value), 1,
                   static_cast<int>(plan_.lanes));
  }

  // Input rows of the block, with what surrounds them.
  Stmt CopyRows(const Expr& first_row) const {
    const ConvolutionDimension& d = shape_.rows;
    const int64_t count = plan_.BufferRows();
    const ir::Var r = IndexVar("buffer_row", count), h = ir::MakeIndex("place", -d.low, d.in * d.base_dilation, kIndex);
    const Expr place = first_row * d.stride + ir::Ref(r) * d.copy_stride() - d.low;
    const Expr at = buffer_at_ + ir::Ref(r) * pitch_;
    const auto [is_there, row] = InputElementAt(d, ir::Ref(h));
    const Stmt copy =
        CopyRow(at, ((image_ * d.in) + row) * (shape_.columns.in * PixelElements()) + group_ * shape_.channels);
    return Loop(r, Index(0), Index(count), ir::Block({ir::Let(h, place), ir::If(is_there, copy, Zero(at, pitch_))}));
  }

  Stmt CopyRow(const Expr& at, const Expr& from) const {
    const ConvolutionDimension& d = shape_.columns;
    const int64_t c = shape_.channels, span = plan_.BufferColumns();
    const Run run = RunOf(d, span);
    const int64_t elements = CeilDiv(run.end - run.first, run.step);
    if (elements <= 0) return Zero(at, pitch_);
    if (run.step == 1 && !d.Subsampled() && shape_.groups == 1) {
      const Expr to = at + run.first * c, source = from + run.from * c;
      const Stmt copy =
          plan_.pairs_overlap ? CopyPairs(to, source, elements * c, run.first > 0) : Copy(to, source, elements * c);
      return ir::Block({Zero(at, run.first * c), copy, Zero(at + run.end * c, (span - run.end) * c)});
    }
    const ir::Var e = IndexVar("element", elements);
    const Stmt pixel = Copy(at + (ir::Ref(e) * run.step + run.first) * c,
                            from + (ir::Ref(e) * d.copy_stride() + run.from) * PixelElements(), c);
    const bool holes = run.first > 0 || run.step > 1 || run.end < span;
    return ir::Block({holes ? Zero(at, pitch_) : nullptr, Loop(e, Index(0), Index(elements), pixel)});
  }

  // The weights of a panel stay in the second cache over all tiles of the block.
  Stmt Tiles(const Expr& first_row, const Expr& panel_block) {
    const ir::Var panel = IndexVar("panel", plan_.panels);
    const Expr first_panel = panel_block * plan_.panels_per_block;
    const bool even = plan_.panels % plan_.panels_per_block == 0;
    const Expr end_panel = even ? first_panel + plan_.panels_per_block
                                : ir::Min(first_panel + plan_.panels_per_block, Index(plan_.panels));
    const int64_t tail = shape_.features % plan_.width(), whole = shape_.features / plan_.width();
    const auto tiles = [&](int64_t features) { return PixelTiles(first_row, ir::Ref(panel), features); };
    Stmt body;
    if (tail == 0)
      body = tiles(plan_.width());
    else if (whole == 0)
      body = tiles(tail);
    else
      body = ir::If(ir::Ref(panel) < Index(whole), tiles(plan_.width()), tiles(tail));
    return Loop(panel, first_panel, end_panel, body);
  }

  // Tiles that end the image start early enough to end with it; pixels done before are not stored again.
  Stmt PixelTiles(const Expr& first_row, const Expr& panel, int64_t features) {
    const int64_t rows = shape_.rows.out, columns = shape_.columns.out, height = plan_.tile_rows,
                  width = plan_.tile_columns;
    const ir::Var row = IndexVar("tile_row", rows), column = IndexVar("tile_column", columns);
    const ir::Var y = IndexVar("y", rows), x = IndexVar("x", columns);
    const bool ragged = plan_.HasRaggedBlocks();
    const bool even_rows = ragged || rows % height == 0, even_columns = columns % width == 0;
    const Expr end_row = ir::Min(first_row + plan_.rows_per_block, rows_end_);
    const Expr at_row = even_rows ? ir::Ref(row) : ir::Min(ir::Ref(row), Index(rows - height));
    const Expr at_column = even_columns ? ir::Ref(column) : ir::Min(ir::Ref(column), Index(columns - width));
    // Of a block that starts early, the first tiles with rows that no block before has.
    const Expr behind = first_new_row_ - first_row;
    const Expr begin_row = ragged ? first_row + ir::Binary(Op::kFloorDiv, behind, Index(height)) * height : first_row;
    const Expr done_rows = ragged      ? ir::Max(first_new_row_ - ir::Ref(y), Index(0))
                           : even_rows ? Index(0)
                                       : ir::Ref(row) - ir::Ref(y);
    const Expr done_columns = even_columns ? Index(0) : ir::Ref(column) - ir::Ref(x);
    // Where rows are short a tile has several whole ones, else pixels of one.
    const Expr done = done_rows * width + done_columns;
    const Stmt body = ir::Block(
        {ir::Let(y, at_row), ir::Let(x, at_column), Tile(first_row, ir::Ref(y), ir::Ref(x), panel, features, done)});
    return Loop(row, begin_row, end_row, Loop(column, Index(0), columns_end_, body, width), height);
  }

  Stmt Tile(const Expr& first_row, const Expr& y, const Expr& x, const Expr& panel, int64_t features,
            const Expr& done) {
    const int64_t vectors = CeilDiv(features, plan_.lanes);
    const RegisterTile tile("acc", TilePixels(), vectors, {shape_.compute_type, static_cast<int>(plan_.lanes)});
    const Expr column = panel * plan_.width();
    const auto index = [&](const Expr& pixel, const Expr& feature) {
      RunIndex at;
      at.index.push_back(image_);
      if (shape_.spatial_rank == 2)
        at.index.push_back(plan_.tile_rows == 1 ? y : y + ir::Binary(Op::kFloorDiv, pixel, Index(plan_.tile_columns)));
      at.index.push_back(plan_.tile_rows == 1 ? x + pixel
                                              : x + ir::Binary(Op::kFloorMod, pixel, Index(plan_.tile_columns)));
      at.index.push_back(column + feature);
      at.lane_dimension = at.index.size() - 1;
      return at;
    };
    const auto send = [&](const Expr& pixel) {
      return plan_.result_is_far ? epilogue_->SendForRun(index(pixel, Index(0)), features) : nullptr;
    };
    return ir::Block({tile.Declare(), GoesBySections() ? tile.Store(staging_, tile.RowByRow()) : nullptr,
                      Steps(tile, first_row, y, x, panel, send),
                      TileStore(*epilogue_).Emit(tile, staging_, done, Index(TilePixels()), features, index)});
  }

  // Where the first pixel of a tile meets the first tap: in the rows that were copied, or in the input, where a pixel
  // whose tap is outside has it at no element of its own.
  Expr FirstElement(const Expr& first_row, const Expr& y, const Expr& x) const {
    if (!plan_.reads_in_place) return buffer_at_ + (y - first_row) * tile_row_ + x * tile_column_;
    return image_ * (shape_.rows.in * pitch_) + y * tile_row_ + x * tile_column_ -
           (shape_.rows.low * pitch_ + shape_.columns.low * shape_.channels);
  }

  // Steps that one loop walks: the channels of a row of the window, or of one tap.
  int64_t LoopDepth() const { return shape_.columns.dilation == 1 ? plan_.RowDepth() : shape_.channels; }

  bool GoesBySections() const {
    const int64_t loops = shape_.rows.window * (shape_.columns.dilation == 1 ? 1 : shape_.columns.window);
    // A section ends with its loop: short ones would be mostly ends.
    return 2 * LoopDepth() >= kSectionSteps && opencl::GoesBySections(shape_.compute_type, loops * LoopDepth());
  }

  // Steps `begin` .. `end` of one loop, which the tile's columns `first_column` .. `end_column` take: of pairs, or of
  // the half of one that the row ends with.
  struct StepRange {
    Expr begin, end;
    int64_t first_column, end_column;
    bool is_half = false;
  };
  // Of the tile at column `x`, one behind the other. What is outside the input at an end of its row is left out.
  std::vector<StepRange> StepRanges(const Expr& x) const {
    const int64_t depth = LoopDepth(), width = plan_.tile_columns, c = shape_.channels;
    // What the last pair of a row holds beside its one element is not multiplied by zero: it may be infinite.
    if (plan_.pairs_overlap && shape_.columns.window * c % plan_.words.elements != 0)
      return {{Index(0), Index(depth - 1), 0, width}, {Index(depth - 1), Index(depth), 0, width, true}};
    StepRange inside{Index(0), Index(depth), 0, width};
    if (!plan_.reads_in_place) return {inside};
    std::vector<StepRange> ranges;
    std::optional<StepRange> behind;
    for (const EdgeTap& edge : EdgeTaps(plan_)) {
      const Expr is_edge = ir::Compare(Op::kEq, x, Index(edge.column));
      if (edge.tap == 0) {
        inside.begin = ir::Select(is_edge, Index(c), Index(0));
        ranges.push_back({Index(0), inside.begin, edge.first, edge.end});
      } else {
        inside.end = ir::Select(is_edge, Index(edge.tap * c), Index(depth));
        behind = {inside.end, Index(depth), edge.first, edge.end};
      }
    }
    ranges.push_back(inside);
    if (behind) ranges.push_back(*behind);
    return ranges;
  }

  // A step of the tile: its first pixel's element lies at `pixel`, wherever that is, and the panel's weights at
  // `weight`.
  Stmt Step(const RegisterTile& tile, const StepRange& range, const ir::Var& pixel, const ir::Var& weight) const {
    const RegisterTile::Multiplier words{hlo::ElementType::kU32,
                                         [&](const Expr& sum, const Expr& element, const Expr& weights) {
                                           return DotWords(plan_.words.kind, sum, element, weights);
                                         }};
    return tile.Step(
        [&](int64_t p) -> Expr {
          const int64_t column = p % plan_.tile_columns;
          if (column < range.first_column || column >= range.end_column) return nullptr;
          const int64_t offset = p / plan_.tile_columns * tile_row_ + column * tile_column_;
          const Expr element = ir::Load(buffer_, ir::Ref(pixel) + offset);
          return range.is_half ? ir::Binary(Op::kAnd, element, ir::Int(kLowerHalf, element->type)) : element;
        },
        [&](int64_t v) {
          return ir::Load(weights_, ir::Ramp(ir::Ref(weight) + v * plan_.lanes, static_cast<int>(plan_.lanes)));
        },
        plan_.words ? &words : nullptr);
  }

  // All taps of the window. The first steps send for where a pixel each will be stored.
  Stmt Steps(const RegisterTile& tile, const Expr& first_row, const Expr& y, const Expr& x, const Expr& panel,
             const std::function<Stmt(const Expr& pixel)>& send) const {
    const ConvolutionDimension &rows = shape_.rows, &columns = shape_.columns;
    const int64_t c = shape_.channels, width = plan_.width();
    const ir::Var kh = IndexVar("kh", rows.window), kw = IndexVar("kw", columns.window);
    const bool merged = columns.dilation == 1;
    const int64_t depth = LoopDepth(), stride = plan_.pairs_overlap ? plan_.words.elements : 1;
    const ir::Var k = IndexVar("k", depth);
    const ir::Var pixel = ir::MakeVar("pixel_at", kIndex), weight = ir::MakeVar("weight_at", kIndex);
    const ir::Var tap = ir::MakeVar("tap_at", kIndex), taps = ir::MakeVar("tap_weights", kIndex);
    Expr buffer = FirstElement(first_row, y, x) + ir::Ref(kh) * (rows.dilation * pitch_);
    Expr packed = (panel * (rows.window * columns.window) + ir::Ref(kh) * columns.window) * (c * width);
    if (plan_.pairs_overlap) packed = (ir::Ref(kh) * plan_.panels + panel) * (depth * width);
    if (!merged) {
      buffer = buffer + ir::Ref(kw) * (columns.dilation * c);
      packed = packed + ir::Ref(kw) * (c * width);
    }
    const auto [first, end] = WindowRows(y);
    const Expr early =
        ir::And(ir::Compare(Op::kEq, ir::Ref(kh), first), ir::Ref(k) < Index(std::min(depth, TilePixels())));
    const Expr is_first = merged ? early : ir::And(ir::Compare(Op::kEq, ir::Ref(kw), Index(0)), early);
    const Stmt sent = send(ir::Ref(k));
    const std::vector<StepRange> ranges = StepRanges(x);
    const auto steps = [&](const Expr& section_begin, const Expr& section_end) {
      std::vector<Stmt> loops;
      for (const StepRange& range : ranges) {
        const bool is_first_range = &range == &ranges.front(), is_last_range = &range == &ranges.back();
        loops.push_back(
            Loop(k, is_first_range ? section_begin : ir::Max(section_begin, range.begin),
                 is_last_range ? section_end : ir::Min(section_end, range.end),
                 ir::Block({ir::Let(pixel, ir::Ref(tap) + ir::Ref(k) * stride),
                            ir::Let(weight, ir::Ref(taps) + ir::Ref(k) * width), WeightsAhead(tile, ir::Ref(weight)),
                            sent ? ir::If(is_first, sent) : nullptr, Step(tile, range, pixel, weight)})));
      }
      return loops.size() == 1 ? loops.front() : ir::Block(std::move(loops));
    };
    const int64_t section = CeilDiv(depth, CeilDiv(depth, kMostSectionSteps));
    Stmt body = ir::Block({ir::Let(tap, buffer), ir::Let(taps, packed),
                           GoesBySections() ? SumSections(tile, staging_, Index(0), Index(depth), section, depth, steps)
                                            : steps(Index(0), Index(depth))});
    if (!merged) body = Loop(kw, Index(0), Index(columns.window), body);
    return Loop(kh, first, end, body);
  }

  // Panels that do not stay in the first cache come from the second.
  Stmt WeightsAhead(const RegisterTile& tile, const Expr& weight) const {
    const int64_t element = hlo::BytesOf(shape_.compute_type);
    const int64_t panel = shape_.rows.window * shape_.columns.window * shape_.channels * plan_.width() * element;
    return panel > kPanelBytesKept ? tile.ReadAhead(weights_, weight) : nullptr;
  }

  // Rows of the window that meet the input, for a tile of one row; rows of zeros are skipped.
  std::pair<Expr, Expr> WindowRows(const Expr& y) const {
    const ConvolutionDimension& d = shape_.rows;
    if (plan_.tile_rows > 1 || d.base_dilation > 1 || d.dilation > 1 || !d.MayLeave())
      return {Index(0), Index(d.window)};
    const Expr top = y * d.stride - d.low;
    return {ir::Max(Index(0), Index(0) - top), ir::Min(Index(d.window), Index(d.in) - top)};
  }

  const ConvolutionTask& task_;
  const ConvolutionPlan& plan_;
  const ConvolutionShape& shape_;
  // Elements from a row of what is read, copied or in place, to the next, and from an output's to the next one's.
  const int64_t pitch_, tile_row_, tile_column_;
  KernelParameters parameters_;
  ir::BufferRef input_, weights_, buffer_, staging_;
  std::optional<Epilogue> epilogue_;
  Expr image_, group_, buffer_at_, first_new_row_, rows_end_, columns_end_;
};

}  // namespace

KernelDraft DirectConvolutionKernel(const ConvolutionTask& task, const ConvolutionPlan& plan) {
  return DirectConvolution(task, plan).Emit();
}

}  // namespace hlorun::opencl
