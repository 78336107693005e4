// Ops whose parts need elements of their neighbours.
#include "hlo/builder.h"
#include "passes/expand/reducer_identity.h"
#include "hlo/cumulative_window.h"
#include "passes/spmd/local_op.h"

namespace hlorun::passes::spmd {

namespace attr = hlo::attr;
using hlo::Instruction;
using hlo::Opcode;

namespace {

bool IsCutWindow(const LocalOp& op, int64_t d) {
  return op.KindOf(op.rule.results[0][static_cast<size_t>(d)]) == FactorKind::kWindow && !op.ResultAxes(d).empty();
}

// The positions that this device's windows cover, with `fill` outside of the array; the window then needs no padding.
void CoverWindow(LocalOp& op, hlo::WindowDimension& w, int64_t operand_dimension, int64_t result_dimension,
                 Instruction* fill) {
  const AxisList& axes = op.ResultAxes(result_dimension);
  const int64_t outputs = op.shapes[0].dimension(result_dimension);
  const int64_t whole = op.WholeOperand(0).dimension(operand_dimension);
  const int64_t reach = (w.size - 1) * w.window_dilation + 1;
  const PartStart start{-w.padding_low, outputs * w.stride};
  Instruction* covered =
      op.build.Fetch(op.operand(0), operand_dimension, axes, whole, start, (outputs - 1) * w.stride + reach);
  op.operand(0) = op.build.Mask(covered, operand_dimension, axes, start, 0, whole, fill);
  w.padding_low = w.padding_high = 0;
}

// What lies outside is no part of a window: it changes nothing, which the initial value need not do. Of computations
// that are no single op nothing better is known.
Instruction* FillOf(LocalOp& op) {
  const std::optional<hlo::Literal> identity =
      ReducerIdentity(*op.original.called(), op.operand(0)->shape().element_type());
  return identity ? op.build.Make().Constant(*identity) : op.operand(op.original.operand_count() / 2);
}

// Element by element, by the op's own reducer.
Instruction* Combined(LocalOp& op, Instruction* first, Instruction* second) {
  hlo::Computation* reducer = op.original.called();
  if (const auto opcode = hlo::ReducerOpcode(*reducer)) return op.build.Make().Binary(*opcode, first, second);
  attr::Dimensions all;
  for (int64_t d = 0; d < first->shape().rank(); ++d) all.dimensions.push_back(d);
  return op.build.Make().Make(Opcode::kMap, {first, second}, all, {reducer});
}

}  // namespace

void AdaptPad(LocalOp& op) {
  auto& padding = std::get<attr::Pad>(op.attributes).padding;
  for (size_t i = 0; i < padding.size(); ++i) {
    const auto d = static_cast<int64_t>(i);
    if (!IsCutWindow(op, d)) continue;
    const int64_t size = op.shapes[0].dimension(d), whole = op.WholeOperand(0).dimension(d);
    const PartStart start{-padding[i].low, size};
    Instruction* covered = op.build.Fetch(op.operand(0), d, op.ResultAxes(d), whole, start, size);
    op.operand(0) = op.build.Mask(covered, d, op.ResultAxes(d), start, 0, whole, op.operand(1));
    padding[i] = {};
  }
}

void AdaptSlice(LocalOp& op) {
  auto& slice = std::get<attr::Slice>(op.attributes);
  for (size_t i = 0; i < slice.starts.size(); ++i) {
    const auto d = static_cast<int64_t>(i);
    if (IsCutWindow(op, d)) {
      const int64_t outputs = op.shapes[0].dimension(d), stride = slice.strides[i];
      const PartStart start{slice.starts[i], outputs * stride};
      op.operand(0) = op.build.Fetch(op.operand(0), d, op.ResultAxes(d), op.WholeOperand(0).dimension(d), start,
                                     (outputs - 1) * stride + 1);
      slice.starts[i] = 0;
      slice.limits[i] = (outputs - 1) * stride + 1;
    } else if (!op.ResultAxes(d).empty()) {
      slice.limits[i] = op.operand(0)->shape().dimension(d);
    }
  }
}

// The devices' order is reversed, then each part. What an uneven cut pads at the end would come to the beginning: first
// everything moves to the end.
void AdaptReverse(LocalOp& op) {
  for (int64_t d = 0; d < op.shapes[0].rank(); ++d) {
    if (!IsCutWindow(op, d)) continue;
    const AxisList& axes = op.ResultAxes(d);
    const int64_t parts = op.build.mesh().SizeOf(axes), size = op.shapes[0].dimension(d);
    const int64_t whole = op.WholeOperand(0).dimension(d);
    Instruction* moved = op.build.Fetch(op.operand(0), d, axes, whole, {whole - size * parts, size}, size);
    std::vector<std::pair<int64_t, int64_t>> pairs;
    for (const std::vector<int64_t>& group : op.build.mesh().Groups(axes)) {
      for (size_t p = 0; p < group.size(); ++p) pairs.emplace_back(group[p], group[group.size() - 1 - p]);
    }
    op.operand(0) = op.build.Permute(moved, std::move(pairs));
  }
}

// Each device fetches what lies in its part of every operand, and selects by position.
void AdaptConcatenate(LocalOp& op) {
  const int64_t d = op.original.dimensions()[0];
  if (!IsCutWindow(op, d)) return;
  const AxisList& axes = op.ResultAxes(d);
  const int64_t size = op.shapes[0].dimension(d);
  Instruction* position = op.build.StartOf(axes, {0, size});
  int64_t limit = 0;
  Instruction* result = nullptr;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const int64_t length = op.WholeOperand(static_cast<int64_t>(i)).dimension(d);
    if (length == 0) continue;
    Instruction* piece = op.build.Fetch(op.operands[i], d, axes, length, {-limit, size}, size);
    if (result == nullptr) {
      result = piece;
    } else {
      Instruction* from_here = op.build.InRange(piece->shape(), d, position, limit, int64_t{1} << 31);
      result = op.build.Make().Select(from_here, piece, result);
    }
    limit += length;
  }
  op.done = result;
}

// Running sums along a cut dimension: each part's own, then combined with what all parts before it (behind it, from the
// end) come to. Only those totals are exchanged.
void AdaptCumulative(LocalOp& op, const hlo::CumulativeWindow& along) {
  const int64_t d = along.dimension;
  const AxisList& axes = op.ResultAxes(d);
  const int64_t size = op.shapes[0].dimension(d), whole = op.WholeOperand(0).dimension(d);
  Instruction* neutral = FillOf(op);
  Instruction* own = op.build.Mask(op.operand(0), d, axes, {0, size}, 0, whole, neutral);
  attr::Windowed windowed = std::get<attr::Windowed>(op.attributes);
  hlo::WindowDimension& w = windowed.window[static_cast<size_t>(d)];
  w.size = size;
  w.padding_low = along.reverse ? 0 : size - 1;
  w.padding_high = along.reverse ? size - 1 : 0;
  hlo::Builder b = op.build.Make();
  Instruction* running = b.Make(Opcode::kReduceWindow, {own, neutral}, windowed, {op.original.called()});
  const int64_t last = along.reverse ? 0 : size - 1;
  Instruction* totals = op.build.AllGather(op.build.SliceOf(running, d, last, last + 1), d, axes);
  const hlo::Shape line(hlo::ElementType::kS32, {totals->shape().dimension(d)});
  Instruction* mine = b.Broadcast(op.build.Coordinate(axes), line.dimensions(), {});
  Instruction* is_needed =
      b.Compare(b.Iota(line, 0), mine, along.reverse ? hlo::ComparisonDirection::kGt : hlo::ComparisonDirection::kLt);
  totals = b.Select(b.Broadcast(is_needed, totals->shape().dimensions(), {d}), totals,
                    b.Broadcast(neutral, totals->shape().dimensions(), {}));
  Instruction* others = b.Reduce({totals}, {neutral}, {d}, op.original.called());
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < running->shape().rank(); ++i) {
    if (i != d) kept.push_back(i);
  }
  others = b.Broadcast(others, running->shape().dimensions(), kept);
  op.done = along.reverse ? Combined(op, running, others) : Combined(op, others, running);
  Instruction* init = op.operand(1);
  if (neutral != init) op.done = Combined(op, b.Broadcast(init, op.done->shape().dimensions(), {}), op.done);
}

void AdaptReduceWindow(LocalOp& op) {
  const std::optional<hlo::CumulativeWindow> along = CumulativeWindowOf(op.original);
  if (along && IsCutWindow(op, along->dimension)) return AdaptCumulative(op, *along);
  auto& window = std::get<attr::Windowed>(op.attributes).window;
  for (size_t i = 0; i < window.size(); ++i) {
    const auto d = static_cast<int64_t>(i);
    if (IsCutWindow(op, d)) CoverWindow(op, window[i], d, d, FillOf(op));
  }
}

void AdaptConvolution(LocalOp& op) {
  auto& conv = std::get<attr::Convolution>(op.attributes);
  Instruction* zero = op.build.Zero(op.operand(0)->shape().element_type());
  Instruction* kernel_zero = op.build.Zero(op.operand(1)->shape().element_type());
  MaskReduced(op, 0, zero);
  MaskReduced(op, 1, kernel_zero);
  for (size_t i = 0; i < conv.window.size(); ++i) {
    if (!IsCutWindow(op, conv.dimensions.output_spatial[i])) continue;
    CoverWindow(op, conv.window[i], conv.dimensions.input_spatial[i], conv.dimensions.output_spatial[i], zero);
  }
  const int64_t groups = conv.feature_group_count * conv.batch_group_count;
  if (groups == 1) return;
  // The groups are the first factor of the rule.
  const int64_t parts = op.build.mesh().SizeOf(op.axes[0]);
  (conv.feature_group_count > 1 ? conv.feature_group_count : conv.batch_group_count) = groups / parts;
}

}  // namespace hlorun::passes::spmd
