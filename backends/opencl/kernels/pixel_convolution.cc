#include "backends/opencl/kernels/pixel_convolution.h"

#include <algorithm>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/interleaved.h"
#include "backends/opencl/kernels/epilogue.h"
#include "backends/opencl/kernels/index_math.h"
#include "backends/opencl/kernels/input_element.h"
#include "backends/opencl/kernels/register_tile.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::kIndex;
using ir::LoopRole;
using ir::Stmt;

class PixelConvolution {
 public:
  PixelConvolution(const ConvolutionTask& task, const PixelConvolutionPlan& plan)
      : plan_(plan),
        shape_(plan.shape),
        input_(parameters_.Add("input", shape_.input_type,
                               shape_.batch * shape_.rows.in * shape_.columns.in * plan.channels(), task.input)),
        weights_(parameters_.Add("weights", shape_.weight_type, shape_.Depth() * shape_.features, task.weights)),
        buffer_(parameters_.Add("buffer", shape_.compute_type, plan.groups * plan.BufferElements(),
                                ScratchSlice(0, plan.ScratchBytes(), true))),
        epilogue_(task.instruction, task.hero, task.aliases, parameters_),
        staging_(MakeStaging("staging", shape_.compute_type, shape_.features * plan.tile())) {}

  KernelDraft Emit() {
    const ir::Var slot = IndexVar("slot", plan_.groups), block = IndexVar("block", plan_.blocks());
    const ir::Var image = IndexVar("image", shape_.batch);
    const ir::Var first_row = IndexVar("first_row", shape_.rows.out),
                  first_column = IndexVar("first_column", shape_.columns.out);
    const ir::Var y = IndexVar("y", shape_.rows.out);
    const Expr rows = Quotient(ir::Ref(block), plan_.column_blocks());
    image_ = ir::Ref(image);
    first_row_ = ir::Ref(first_row);
    first_column_ = ir::Ref(first_column);
    buffer_at_ = ir::Ref(slot) * plan_.BufferElements();
    y_ = ir::Ref(y);
    const Expr end_row = EndOfRun(first_row_, plan_.rows_per_block, shape_.rows.out);
    const Stmt body =
        ir::Block({ir::Let(image, Quotient(rows, plan_.row_blocks())),
                   ir::Let(first_row, Remainder(rows, plan_.row_blocks()) * plan_.rows_per_block),
                   ir::Let(first_column, Remainder(ir::Ref(block), plan_.column_blocks()) * plan_.columns_per_block),
                   CopyRows(), Loop(y, first_row_, end_row, Tiles())});
    const Stmt walk = Loop(block, ir::Ref(slot), Index(plan_.blocks()), body, plan_.groups);
    const Stmt nest = ir::For(LoopRole::kParallel, slot, Index(0), Index(plan_.groups), walk);
    return MakeDraft("pixel_convolution", parameters_, ir::Block({ir::DeclareArray(staging_), nest}));
  }

 private:
  int Lanes() const { return static_cast<int>(plan_.lanes); }

  // `value` of each i of begin .. end, side by side from `to` on.
  template <typename Value>
  Stmt Fill(const char* name, const Expr& to, const Expr& begin, const Expr& end, const Value& value) const {
    const ir::Var i = IndexVar(name, plan_.RowElements());
    return ir::For(LoopRole::kVector, i, begin, end, ir::Store(buffer_, to + ir::Ref(i), value(ir::Ref(i))), 1,
                   Lanes());
  }
  Stmt Zero(const char* name, const Expr& to, const Expr& begin, const Expr& end) const {
    return Fill(name, to, begin, end, [&](const Expr&) { return ir::Zero({shape_.compute_type, 1}); });
  }
  // Of a row of the input that begins at `row`.
  Expr Read(const Expr& row, const Expr& column, const Expr& channel) const {
    return ir::Cast(ir::Load(input_, row + column * plan_.channels() + channel), shape_.compute_type);
  }

  // Rows of the input that the block meets, and what lies between and around them.
  Stmt CopyRows() const {
    const ConvolutionDimension& d = shape_.rows;
    const ir::Var r = IndexVar("buffer_row", plan_.BufferRows()),
                  h = ir::MakeIndex("place", -d.low, d.in * d.base_dilation, kIndex),
                  row = ir::MakeVar("row_at", kIndex), channel = IndexVar("channel", plan_.channels());
    const Expr at = buffer_at_ + ir::Ref(r) * plan_.RowElements();
    const auto [is_there, number] = InputElementAt(d, ir::Ref(h));
    const Stmt copy =
        ir::Block({ir::Let(row, (image_ * d.in + number) * (shape_.columns.in * plan_.channels())),
                   Loop(channel, Index(0), Index(plan_.channels()),
                        CopyChannel(at + ir::Ref(channel) * plan_.ChannelElements(), ir::Ref(row), ir::Ref(channel)))});
    const Stmt either = ir::If(is_there, copy, Zero("zero", at, Index(0), Index(plan_.RowElements())));
    return Loop(r, Index(0), Index(plan_.BufferRows()),
                ir::Block({ir::Let(h, first_row_ * d.stride + ir::Ref(r) * d.copy_stride() - d.low), either}));
  }

  Stmt CopyChannel(const Expr& to, const Expr& row, const Expr& channel) const {
    const ConvolutionDimension& d = shape_.columns;
    const int64_t length = plan_.PhaseElements();
    const Expr all = Index(length);
    // Places from the block's first one on.
    const auto within = [&](const Expr& place) { return ir::Max(Index(0), ir::Min(place, all)); };
    if (d.base_dilation > 1) {
      const ir::Var e = IndexVar("element", d.in);
      const auto elements_before = [&](const Expr& place) {
        const Expr count = Quotient(place + (d.base_dilation - 1 - d.low), d.base_dilation);
        return ir::Max(Index(0), ir::Min(count, Index(d.in)));
      };
      const Expr place = ir::Ref(e) * d.base_dilation + d.low - first_column_;
      return ir::Block({Zero("hole", to, Index(0), all),
                        Loop(e, elements_before(first_column_), elements_before(first_column_ + length),
                             ir::Store(buffer_, to + place, Read(row, ir::Ref(e), channel)))});
    }
    const ir::Var phase = IndexVar("phase", plan_.phases()), begin = IndexVar("begin", length + 1),
                  end = IndexVar("end", length + 1);
    // The first place of the phase whose element is at or behind `element`.
    const auto place_of = [&](int64_t element) {
      return within(Quotient(Index(d.stride - 1 + d.low + element) - ir::Ref(phase), d.stride) - first_column_);
    };
    const Expr at = to + ir::Ref(phase) * length;
    const Stmt copy = ir::Block(
        {ir::Let(begin, place_of(0)), ir::Let(end, place_of(d.in)), Zero("before", at, Index(0), ir::Ref(begin)),
         Fill("copy", at, ir::Ref(begin), ir::Ref(end),
              [&](const Expr& i) {
                return Read(row, (first_column_ + i) * d.stride + ir::Ref(phase) - d.low, channel);
              }),
         Zero("behind", at, ir::Ref(end), all)});
    return Loop(phase, Index(0), Index(plan_.phases()), copy);
  }

  // Of one row of outputs. The last tile may end before its vectors do.
  Stmt Tiles() {
    const ir::Var x = IndexVar("x", shape_.columns.out);
    const int64_t out = shape_.columns.out, width = plan_.tile(), tail = out % width;
    x_ = ir::Ref(x);
    const Expr end = EndOfRun(first_column_, plan_.columns_per_block, out);
    const auto either = [&] {
      if (tail == 0) return Tile(width);
      if (out < width) return Tile(tail);
      return ir::If(x_ < Index(out - tail), Tile(width), Tile(tail));
    };
    return Loop(x, first_column_, end, either(), width);
  }

  // The sums of each group of features, and then all of them at once: they lie side by side.
  Stmt Tile(int64_t columns) {
    const int64_t features = shape_.group_features();
    const RegisterTile tile("acc", features, CeilDiv(columns, plan_.lanes), {shape_.compute_type, Lanes()});
    const ir::Var group = IndexVar("group", shape_.groups);
    if (shape_.features == 1) {
      const auto index = [&](const Expr& feature, const Expr& column) { return At(column, feature); };
      return ir::Block({tile.Declare(), Taps(tile, Index(0)),
                        TileStore(epilogue_).Emit(tile, staging_, Index(0), Index(1), columns, index)});
    }
    const Stmt save = tile.Store(staging_, [&](int64_t f, int64_t v) {
      return (ir::Ref(group) * features + f) * tile.columns() + v * plan_.lanes;
    });
    const Stmt sums = ir::Block({tile.Declare(), Taps(tile, ir::Ref(group)), save});
    return ir::Block({Loop(group, Index(0), Index(shape_.groups), sums), StoreFeatures(tile.columns(), columns)});
  }

  // Of the tile's pixel `column`.
  RunIndex At(const Expr& column, const Expr& feature) const {
    RunIndex at;
    at.index = {image_, x_ + column};
    at.lane_dimension = 1;
    if (shape_.spatial_rank == 2 && plan_.is_column) at.index.push_back(y_);
    if (shape_.spatial_rank == 2 && !plan_.is_column)
      at.index.insert(at.index.begin() + static_cast<ptrdiff_t>(at.lane_dimension++), y_);
    at.index.push_back(feature);
    return at;
  }

  // `columns` pixels of each feature, from rows of `width` staged sums.
  Stmt StoreFeatures(int64_t width, int64_t columns) const {
    if (shape_.features <= kLongestStoredRow) {
      std::vector<RunIndex> runs;
      for (int64_t f = 0; f < shape_.features; ++f) runs.push_back(At(Index(0), Index(f)));
      return epilogue_.StoreSideBySide(runs, columns, plan_.lanes, [&](size_t f, const Expr& place) {
        return ir::Load(staging_, place + static_cast<int64_t>(f) * width);
      });
    }
    const ir::Var feature = IndexVar("feature", shape_.features);
    // Stores some elements apart are no faster as vectors; what is computed before them is.
    const int64_t lanes = epilogue_.IsPlain() ? 1 : plan_.lanes;
    return epilogue_.StoreRows(
        feature, Index(0), Index(shape_.features), [&](const Expr& f) { return At(Index(0), f); }, columns, lanes,
        [&](const Expr& place) { return ir::Load(staging_, ir::Ref(feature) * width + place); });
  }

  // Each tap's weights meet a run of pixels.
  Stmt Taps(const RegisterTile& tile, const Expr& group) const {
    const ConvolutionDimension &rows = shape_.rows, &columns = shape_.columns;
    const ir::Var kh = IndexVar("kh", rows.window), c = IndexVar("c", shape_.channels),
                  kw = IndexVar("kw", columns.window), pixel = ir::MakeVar("pixel_at", kIndex),
                  weight = ir::MakeVar("weight_at", kIndex);
    const Expr row = (y_ - first_row_) * rows.tile_stride() + ir::Ref(kh) * rows.dilation;
    const Expr channel = group * shape_.channels + ir::Ref(c), tap = ir::Ref(kw) * columns.dilation;
    const Expr place = plan_.phases() == 1
                           ? tap
                           : Remainder(tap, columns.stride) * plan_.PhaseElements() + Quotient(tap, columns.stride);
    const Stmt step = ir::Block(
        {ir::Let(pixel, buffer_at_ + row * plan_.RowElements() + channel * plan_.ChannelElements() + place +
                            (x_ - first_column_)),
         ir::Let(weight,
                 ((ir::Ref(kh) * columns.window + ir::Ref(kw)) * shape_.channels + ir::Ref(c)) * shape_.features +
                     group * shape_.group_features()),
         tile.Step([&](int64_t f) { return ir::Cast(ir::Load(weights_, ir::Ref(weight) + f), shape_.compute_type); },
                   [&](int64_t v) { return ir::Load(buffer_, ir::Ramp(ir::Ref(pixel) + v * plan_.lanes, Lanes())); })});
    return Loop(kh, Index(0), Index(rows.window),
                Loop(c, Index(0), Index(shape_.channels), Loop(kw, Index(0), Index(columns.window), step)));
  }

  const PixelConvolutionPlan& plan_;
  const ConvolutionShape& shape_;
  KernelParameters parameters_;
  const ir::BufferRef input_, weights_, buffer_;
  const Epilogue epilogue_;
  const ir::BufferRef staging_;
  Expr image_, first_row_, first_column_, buffer_at_, y_, x_;
};

}  // namespace

KernelDraft PixelConvolutionKernel(const ConvolutionTask& task, const PixelConvolutionPlan& plan) {
  return PixelConvolution(task, plan).Emit();
}

}  // namespace hlorun::opencl
