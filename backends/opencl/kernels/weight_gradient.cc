#include "backends/opencl/kernels/weight_gradient.h"

#include "backends/opencl/kernels/combine_parts.h"
#include "backends/opencl/kernels/depthwise_gradient.h"
#include "backends/opencl/kernels/gradient_arrays.h"
#include "backends/opencl/kernels/gradient_pixels.h"
#include "backends/opencl/kernels/index_math.h"
#include "backends/opencl/kernels/packing.h"
#include "backends/opencl/kernels/register_tile.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::kIndex;
using ir::LoopRole;
using ir::Op;
using ir::Stmt;

Stmt Parallel(const ir::Var& var, int64_t end, const Stmt& body) {
  return ir::For(LoopRole::kParallel, var, Index(0), Index(end), body);
}

class Gradient {
 public:
  Gradient(const WeightGradientTask& task, const WeightGradientPlan& plan)
      : plan_(plan),
        shape_(plan.shape),
        tile_("acc", plan.rows, plan.vectors, {plan.shape.compute_type, static_cast<int>(plan.lanes)}),
        arrays_(task, plan) {}

  KernelDraft Emit() {
    const ir::Var part = IndexVar("part", plan_.parts()), panel = IndexVar("panel", plan_.panels);
    const ir::Var tile_block = IndexVar("tile_block", plan_.tile_blocks()),
                  block = IndexVar("block", shape_.GradientRows());
    const ir::Var tile = IndexVar("tile", plan_.tiles), tap_row = IndexVar("tap_row", shape_.rows.out),
                  tap_column = IndexVar("tap_column", shape_.columns.out);
    const ir::Var part_end = ir::MakeIndex("part_end", 0, shape_.GradientRows(), kIndex);
    const Expr part_begin = ir::Ref(part) * plan_.rows_per_part;
    const Expr first_tile = ir::Ref(tile_block) * plan_.tiles_per_block;
    const Expr block_end = ir::Min(ir::Ref(block) + plan_.rows_per_block, ir::Ref(part_end));
    const Expr tap = ir::Ref(tap_row) * shape_.columns.out + ir::Ref(tap_column);
    const Expr to = (((ir::Ref(part) * shape_.taps() + tap) * plan_.tiles + ir::Ref(tile)) * plan_.rows * plan_.panels +
                     ir::Ref(panel)) *
                    plan_.width();
    const auto position = [&](int64_t r, int64_t v) {
      return to + (r * plan_.panels * plan_.width() + v * plan_.lanes);
    };
    const Expr group = GroupOfPanel(ir::Ref(panel), plan_.panels, plan_.panels_together());
    const Expr channel = plan_.is_packed ? ir::Ref(tile) * (plan_.InputPixels() * plan_.rows)
                                         : group * shape_.channels + Start(ir::Ref(tile), plan_.rows, shape_.channels);
    const Expr feature = plan_.is_packed
                             ? ir::Ref(panel) * (plan_.GradientPixels() * plan_.width())
                             : group * plan_.features_together() +
                                   Start(PanelInGroup(ir::Ref(panel), plan_.panels, plan_.panels_together()),
                                         plan_.width(), plan_.features_together());
    const Stmt one = ir::Block(
        {tile_.Declare(), ir::If(ir::Compare(Op::kGt, ir::Ref(block), part_begin), tile_.Load(arrays_.sums, position)),
         Sum(ir::Ref(block), block_end, ir::Ref(tap_row), ir::Ref(tap_column), channel, feature),
         tile_.Store(arrays_.sums, position)});
    const Stmt taps =
        Loop(tap_row, Index(0), Index(shape_.rows.out), Loop(tap_column, Index(0), Index(shape_.columns.out), one));
    const Stmt tiles = Loop(tile, first_tile, ir::Min(first_tile + plan_.tiles_per_block, Index(plan_.tiles)), taps);
    const Stmt body =
        ir::Block({ir::Let(part_end, ir::Min(part_begin + plan_.rows_per_part, Index(shape_.GradientRows()))),
                   Loop(block, part_begin, ir::Ref(part_end), tiles, plan_.rows_per_block)});
    const Stmt nest =
        Parallel(part, plan_.parts(), Parallel(panel, plan_.panels, Parallel(tile_block, plan_.tile_blocks(), body)));
    return MakeDraft("weight_gradient", arrays_.parameters, nest);
  }

 private:
  // From one pixel to the next.
  int64_t InputStep() const { return plan_.is_packed ? plan_.rows : shape_.InputChannels(); }
  int64_t GradientStep() const { return plan_.is_packed ? plan_.width() : shape_.features; }

  // Gradient rows first .. end, of all images, with one tap. `channel`, `feature`: where the first pixel's are.
  Stmt Sum(const Expr& first, const Expr& end, const Expr& tap_row, const Expr& tap_column, const Expr& channel,
           const Expr& feature) const {
    const ConvolutionDimension &rows = shape_.rows, &columns = shape_.columns;
    const ir::Var row = IndexVar("row", shape_.GradientRows()), pixel = IndexVar("pixel", columns.window);
    const ir::Var y = ir::MakeVar("y", kIndex), left = ir::MakeVar("left", kIndex),
                  right = ir::MakeVar("right", kIndex);
    const ir::Var from_row = ir::MakeVar("input_row", kIndex), gradient_row = ir::MakeVar("gradient_row", kIndex);
    const ir::Var x_at = ir::MakeVar("input_at", kIndex), g_at = ir::MakeVar("gradient_at", kIndex);
    const auto [pixel_first, pixel_end] = PixelsOfTap(columns, tap_column);
    const int64_t step_of_input = columns.dilation * InputStep(), step_of_gradient = GradientStep();
    const int64_t ahead = PixelsAhead(step_of_input * hlo::BytesOf(arrays_.input->storage));
    std::vector<Stmt> step = {ir::Let(x_at, ir::Ref(from_row) + ir::Ref(pixel) * step_of_input),
                              ir::Let(g_at, ir::Ref(gradient_row) + ir::Ref(pixel) * step_of_gradient),
                              ir::Prefetch(arrays_.input, ir::Ref(x_at) + ahead * step_of_input)};
    for (int64_t v = 0; v < plan_.vectors; ++v) {
      step.push_back(ir::Prefetch(arrays_.gradient, ir::Ref(g_at) + (ahead * step_of_gradient + v * plan_.lanes)));
    }
    step.push_back(tile_.Step(
        [&](int64_t r) { return ir::Cast(ir::Load(arrays_.input, ir::Ref(x_at) + r), shape_.compute_type); },
        [&](int64_t v) {
          return ir::Cast(
              ir::Load(arrays_.gradient, ir::Ramp(ir::Ref(g_at) + v * plan_.lanes, static_cast<int>(plan_.lanes))),
              shape_.compute_type);
        }));
    const Expr image = Quotient(ir::Ref(row), rows.window);
    const Expr input_row =
        ((image * rows.in + ir::Ref(y)) * columns.in + (tap_column * columns.stride - columns.low)) * InputStep() +
        channel;
    const Stmt pixels = ir::Block({ir::Let(from_row, input_row),
                                   ir::Let(gradient_row, ir::Ref(row) * (columns.window * step_of_gradient) + feature),
                                   Loop(pixel, ir::Ref(left), ir::Ref(right), ir::Block(std::move(step)))});
    const Expr inside = ir::And(ir::Compare(Op::kGe, ir::Ref(y), Index(0)), ir::Ref(y) < Index(rows.in));
    const Expr at = Remainder(ir::Ref(row), rows.window) * rows.dilation + tap_row * rows.stride - rows.low;
    return ir::Block({ir::Let(left, pixel_first), ir::Let(right, pixel_end),
                      Loop(row, first, end, ir::Block({ir::Let(y, at), ir::If(inside, pixels)}))});
  }

  const WeightGradientPlan& plan_;
  const WeightGradientShape& shape_;
  RegisterTile tile_;
  GradientArrays arrays_;
};

GradientSums SumsOf(const WeightGradientPlan& plan) {
  GradientSums sums;
  sums.argument = ScratchSlice(0, plan.SumsBytes(), false);
  sums.parts = plan.parts();
  sums.of_part = plan.SumsOfPart();
  sums.lanes = plan.lanes;
  sums.vectors = plan.vectors;
  sums.panels = plan.panels;
  sums.panels_together = plan.panels_together();
  sums.features_together = plan.features_together();
  sums.last_overlaps = true;
  sums.place = [&plan](const Expr& tap, const Expr& channel, const Expr& panel) {
    const Expr tile = Quotient(channel, plan.rows);
    const Expr row = channel - Start(tile, plan.rows, plan.shape.channels);
    return (((tap * plan.tiles + tile) * plan.rows + row) * plan.panels + panel) * plan.width();
  };
  return sums;
}

}  // namespace

std::vector<KernelDraft> WeightGradientKernels(const WeightGradientTask& task, const WeightGradientPlan& plan) {
  const WeightGradientShape& shape = plan.shape;
  std::vector<KernelDraft> kernels;
  if (plan.is_packed) {
    const MatrixSource gradient{task.gradient, shape.gradient_type, 1, plan.GradientPixels(), shape.features};
    const MatrixSource input{task.input, shape.input_type, 1, plan.InputPixels(), shape.channels};
    kernels.push_back(
        PackTiles(gradient, shape.compute_type, plan.lanes, plan.width(), GradientArrays::PackedGradient(plan, true)));
    kernels.push_back(
        PackTiles(input, shape.compute_type, plan.lanes, plan.rows, GradientArrays::PackedInput(plan, true)));
  }
  kernels.push_back(shape.IsDepthwise() ? DepthwiseGradientKernel(task, plan) : Gradient(task, plan).Emit());
  kernels.push_back(CombineParts(task, shape, SumsOf(plan)));
  return kernels;
}

}  // namespace hlorun::opencl
