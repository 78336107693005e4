#include "backends/opencl/kernels/depthwise_gradient.h"

#include "backends/opencl/kernels/gradient_arrays.h"
#include "backends/opencl/kernels/gradient_pixels.h"
#include "backends/opencl/kernels/index_math.h"
#include "backends/opencl/kernels/register_tile.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::kIndex;
using ir::Stmt;

// A register tile is the taps of one row of the window by some vectors of channels. A pixel of the gradient is loaded
// once for all of them; what it meets of the input lies side by side, and the next pixel meets most of it again.
class DepthwiseGradient {
 public:
  DepthwiseGradient(const WeightGradientTask& task, const WeightGradientPlan& plan)
      : plan_(plan),
        shape_(plan.shape),
        lanes_(static_cast<int>(plan.lanes)),
        tile_("acc", plan.tap_columns, plan.vectors, {plan.shape.compute_type, lanes_}),
        arrays_(task, plan) {}

  KernelDraft Emit() {
    const ir::Var part = IndexVar("part", plan_.parts()), panel = IndexVar("panel", plan_.panels);
    const ir::Var block = IndexVar("block", shape_.GradientRows()), tap_row = IndexVar("tap_row", shape_.rows.out),
                  tap_block = IndexVar("tap_block", plan_.tap_blocks());
    const ir::Var part_end = ir::MakeIndex("part_end", 0, shape_.GradientRows(), kIndex);
    const Expr part_begin = ir::Ref(part) * plan_.rows_per_part;
    const Expr block_end = ir::Min(ir::Ref(block) + plan_.rows_per_block, ir::Ref(part_end));
    first_tap_ = Start(ir::Ref(tap_block), plan_.tap_columns, shape_.columns.out);
    channel_ = Start(ir::Ref(panel), plan_.width(), shape_.features);
    const Expr tap = ir::Ref(tap_row) * shape_.columns.out + first_tap_;
    const auto position = [&](int64_t t, int64_t v) {
      return ((ir::Ref(part) * shape_.taps() + tap + t) * plan_.panels + ir::Ref(panel)) * plan_.width() +
             v * plan_.lanes;
    };
    const Stmt one =
        ir::Block({tile_.Declare(),
                   ir::If(ir::Compare(ir::Op::kGt, ir::Ref(block), part_begin), tile_.Load(arrays_.sums, position)),
                   Sum(ir::Ref(block), block_end, ir::Ref(tap_row)), tile_.Store(arrays_.sums, position)});
    const Stmt taps =
        Loop(tap_row, Index(0), Index(shape_.rows.out), Loop(tap_block, Index(0), Index(plan_.tap_blocks()), one));
    const Stmt body =
        ir::Block({ir::Let(part_end, ir::Min(part_begin + plan_.rows_per_part, Index(shape_.GradientRows()))),
                   Loop(block, part_begin, ir::Ref(part_end), taps, plan_.rows_per_block)});
    const Stmt nest = ParallelNest({{part, Index(plan_.parts())}, {panel, Index(plan_.panels)}}, body);
    return MakeDraft("depthwise_gradient", arrays_.parameters, nest);
  }

 private:
  // Gradient rows first .. end, of all images, with a tile's taps.
  Stmt Sum(const Expr& first, const Expr& end, const Expr& tap_row) {
    const ConvolutionDimension &rows = shape_.rows, &columns = shape_.columns;
    const ir::Var row = IndexVar("row", shape_.GradientRows());
    const ir::Var y = ir::MakeVar("y", kIndex), input_row = ir::MakeVar("input_row", kIndex),
                  gradient_row = ir::MakeVar("gradient_row", kIndex);
    const ir::Var left = ir::MakeVar("left", kIndex), right = ir::MakeVar("right", kIndex);
    input_row_ = ir::Ref(input_row);
    gradient_row_ = ir::Ref(gradient_row);
    // Pixels that meet all taps of the tile: from where the first does to where the last one ends.
    std::vector<Stmt> pieces = {ir::Let(left, PixelsOfTap(columns, first_tap_).first),
                                ir::Let(right, ir::Max(ir::Ref(left), PixelsOfTap(columns, LastTap()).second))};
    for (int64_t t = 1; t < plan_.tap_columns; ++t) {
      const auto [tap_first, tap_end] = PixelsOfTap(columns, first_tap_ + t);
      pieces.push_back(Pixels(tap_first, ir::Min(ir::Ref(left), tap_end), t, t + 1));
    }
    pieces.push_back(Pixels(ir::Ref(left), ir::Ref(right), 0, plan_.tap_columns));
    for (int64_t t = 0; t + 1 < plan_.tap_columns; ++t) {
      pieces.push_back(Pixels(ir::Ref(right), PixelsOfTap(columns, first_tap_ + t).second, t, t + 1));
    }
    const Expr image = Quotient(ir::Ref(row), rows.window);
    const Expr at = Remainder(ir::Ref(row), rows.window) * rows.dilation + tap_row * rows.stride - rows.low;
    const Expr input_pixel = (image * rows.in + ir::Ref(y)) * columns.in + (first_tap_ * columns.stride - columns.low);
    const Stmt of_row = ir::Block({ir::Let(input_row, input_pixel * shape_.features + channel_),
                                   ir::Let(gradient_row, ir::Ref(row) * (columns.window * shape_.features) + channel_),
                                   ir::Block(pieces)});
    const Expr inside = ir::And(ir::Compare(ir::Op::kGe, ir::Ref(y), Index(0)), ir::Ref(y) < Index(rows.in));
    return Loop(row, first, end, ir::Block({ir::Let(y, at), ir::If(inside, of_row)}));
  }

  Expr LastTap() const { return first_tap_ + (plan_.tap_columns - 1); }

  // Pixels begin .. end of a row with taps first .. end_tap of the tile, all of which they meet.
  Stmt Pixels(const Expr& begin, const Expr& end, int64_t first, int64_t end_tap) const {
    const bool is_whole = end_tap - first == plan_.tap_columns;
    const ir::Var pixel = IndexVar("pixel", shape_.columns.window);
    const ir::Var x_at = ir::MakeVar("input_at", kIndex), g_at = ir::MakeVar("gradient_at", kIndex);
    const int64_t step = shape_.columns.dilation * shape_.features;
    const int64_t ahead = PixelsAhead(step * hlo::BytesOf(shape_.input_type));
    std::vector<Stmt> body = {ir::Let(x_at, input_row_ + ir::Ref(pixel) * step),
                              ir::Let(g_at, gradient_row_ + ir::Ref(pixel) * shape_.features)};
    for (int64_t v = 0; v < plan_.vectors; ++v) {
      const int64_t lane = v * plan_.lanes;
      if (is_whole) {
        body.push_back(ir::Prefetch(arrays_.input, ir::Ref(x_at) + (ahead * step + lane)));
        body.push_back(ir::Prefetch(arrays_.gradient, ir::Ref(g_at) + (ahead * shape_.features + lane)));
      }
      const ir::Var gradient = ir::MakeVar("gradient_" + std::to_string(v), tile_.vector_type());
      body.push_back(ir::Let(gradient, Loaded(arrays_.gradient, ir::Ref(g_at) + lane)));
      for (int64_t t = first; t < end_tap; ++t) {
        const Expr x = Loaded(arrays_.input, ir::Ref(x_at) + (t * shape_.columns.stride * shape_.features + lane));
        body.push_back(ir::Assign(tile_.At(t, v)->var, AddProduct(tile_.At(t, v), x, ir::Ref(gradient))));
      }
    }
    return Loop(pixel, begin, end, ir::Block(std::move(body)));
  }

  Expr Loaded(const ir::BufferRef& buffer, const Expr& at) const {
    return ir::Cast(ir::Load(buffer, ir::Ramp(at, lanes_)), shape_.compute_type);
  }

  const WeightGradientPlan& plan_;
  const WeightGradientShape& shape_;
  int lanes_;
  RegisterTile tile_;
  GradientArrays arrays_;
  Expr first_tap_, channel_, input_row_, gradient_row_;
};

}  // namespace

KernelDraft DepthwiseGradientKernel(const WeightGradientTask& task, const WeightGradientPlan& plan) {
  return DepthwiseGradient(task, plan).Emit();
}

}  // namespace hlorun::opencl
