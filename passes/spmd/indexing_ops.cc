// Ops with run-time indices: each device moves them by its part's offset and masks what is not its own.
#include <algorithm>

#include "hlo/builder.h"
#include "passes/expand/reducer_identity.h"
#include "passes/spmd/local_op.h"

namespace hlorun::passes::spmd {

namespace attr = hlo::attr;
using hlo::ComparisonDirection;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

namespace {

// A scalar of x's type, of x's dimensions.
Instruction* SplatLike(hlo::Builder& b, Instruction* x, int64_t value) { return b.Splat(x->shape(), value); }

// clamp(low, x, high) as s32. Types that cannot hold `high` are widened first, wider ones clamped first.
Instruction* ClampedIndex(hlo::Builder b, Instruction* x, int64_t high) {
  if (hlo::BitsOf(x->shape().element_type()) < 32) x = b.Convert(x, ElementType::kS32);
  x = b.Binary(Opcode::kMinimum, x, SplatLike(b, x, high));
  if (hlo::IsSigned(x->shape().element_type())) x = b.Binary(Opcode::kMaximum, x, SplatLike(b, x, 0));
  return x->shape().element_type() == ElementType::kS32 ? x : b.Convert(x, ElementType::kS32);
}

Instruction* ClampTo(hlo::Builder b, Instruction* x, int64_t high) {
  return b.Binary(Opcode::kMaximum, b.Binary(Opcode::kMinimum, x, SplatLike(b, x, high)), SplatLike(b, x, 0));
}

// Scalars that say where this device's part begins.
Instruction* OffsetFrom(LocalOp& op, Instruction* index, const AxisList& axes, int64_t length) {
  return op.build.Make().Binary(Opcode::kSubtract, index, op.build.StartOf(axes, {0, length}));
}

Instruction* InHalfOpen(hlo::Builder b, Instruction* x, int64_t limit) {
  return b.Binary(Opcode::kAnd, b.Compare(x, SplatLike(b, x, 0), ComparisonDirection::kGe),
                  b.Compare(x, SplatLike(b, x, limit), ComparisonDirection::kLt));
}

}  // namespace

// The part lies between two runs of zeros as long as the slice; a slice elsewhere takes zeros, and the sum of all has
// the slice.
void AdaptDynamicSlice(LocalOp& op) {
  auto& sizes = std::get<attr::DynamicSlice>(op.attributes).sizes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto d = static_cast<int64_t>(i);
    const int64_t length = op.operand(0)->shape().dimension(d), whole = op.WholeOperand(0).dimension(d);
    const AxisList& axes = op.OperandAxes(0, d);
    if (sizes[i] == whole) {
      sizes[i] = length;
      op.operand(d + 1) = op.build.Zero(ElementType::kS32);
      continue;
    }
    Instruction* start = ClampedIndex(op.build.Make(), op.operand(d + 1), whole - sizes[i]);
    if (!axes.empty()) {
      start = OffsetFrom(op, start, axes, length - 0);
      hlo::Builder b = op.build.Make();
      start = ClampTo(b, b.Binary(Opcode::kAdd, start, SplatLike(b, start, sizes[i])), length + sizes[i]);
      op.operand(0) =
          op.build.PadWith(op.operand(0), d, sizes[i], sizes[i], op.build.Zero(op.operand(0)->shape().element_type()));
    }
    op.operand(d + 1) = start;  // all of one type
  }
}

void AdaptDynamicUpdateSlice(LocalOp& op) {
  const Shape& update = op.WholeOperand(1);
  Instruction* is_mine = nullptr;
  std::vector<int64_t> margins(static_cast<size_t>(update.rank()), 0);
  for (int64_t d = 0; d < update.rank(); ++d) {
    const int64_t length = op.operand(0)->shape().dimension(d), whole = op.WholeOperand(0).dimension(d);
    const AxisList& axes = op.OperandAxes(0, d);
    const int64_t size = update.dimension(d);
    if (size == whole) {
      op.operand(d + 2) = op.build.Zero(ElementType::kS32);
      continue;
    }
    hlo::Builder b = op.build.Make();
    Instruction* start = ClampedIndex(b, op.operand(d + 2), whole - size);
    if (!axes.empty()) {
      start = OffsetFrom(op, start, axes, length);
      if (size == 1) {
        Instruction* here = InHalfOpen(b, start, length);
        is_mine = is_mine == nullptr ? here : b.Binary(Opcode::kAnd, is_mine, here);
        start = ClampTo(b, start, length - 1);
      } else {
        // A margin takes what belongs to other devices.
        margins[static_cast<size_t>(d)] = size;
        op.operand(0) =
            op.build.PadWith(op.operand(0), d, size, size, op.build.Zero(op.operand(0)->shape().element_type()));
        start = ClampTo(b, b.Binary(Opcode::kAdd, start, SplatLike(b, start, size)), length + size);
      }
    }
    op.operand(d + 2) = start;
  }
  hlo::Builder b = op.build.Make();
  const std::vector<Instruction*> starts(op.operands.begin() + 2, op.operands.end());
  Instruction* value = op.operand(1);
  if (is_mine != nullptr) {
    Instruction* old = b.DynamicSlice(op.operand(0), starts, value->shape().dimensions());
    value = b.Select(b.Broadcast(is_mine, value->shape().dimensions(), {}), value, old);
  }
  Instruction* result = b.DynamicUpdateSlice(op.operand(0), value, starts);
  for (size_t d = 0; d < margins.size(); ++d) {
    const auto dim = static_cast<int64_t>(d);
    result = op.build.SliceOf(result, dim, margins[d], result->shape().dimension(dim) - margins[d]);
  }
  op.done = result;
}

namespace {

// Of an index array: one number for each component of an index vector, as an array of its dimensions.
Instruction* PerComponent(hlo::Builder b, Instruction* indices, int64_t vector_dim,
                          const std::vector<Instruction*>& scalars) {
  const hlo::Dims& dims = indices->shape().dimensions();
  if (vector_dim == indices->shape().rank()) return b.Broadcast(scalars[0], dims, {});
  std::vector<Instruction*> ones;
  for (Instruction* scalar : scalars) ones.push_back(b.Reshape(scalar, {1}));
  Instruction* line = ones.size() == 1 ? ones[0] : b.Concatenate(ones, 0);
  return b.Broadcast(line, dims, {vector_dim});
}

// Component `c` of each index vector, without the vector's dimension.
Instruction* Component(LocalOp& op, Instruction* indices, int64_t vector_dim, int64_t c) {
  if (vector_dim == indices->shape().rank()) return indices;
  Instruction* sliced = op.build.SliceOf(indices, vector_dim, c, c + 1);
  hlo::Dims dims = sliced->shape().dimensions();
  dims.erase(dims.begin() + vector_dim);
  return op.build.Make().Reshape(sliced, dims);
}

}  // namespace

void AdaptGather(LocalOp& op) {
  auto& g = std::get<attr::Gather>(op.attributes);
  const Shape& whole = op.WholeOperand(0);
  for (int64_t d = 0; d < whole.rank(); ++d) {
    int64_t& size = g.slice_sizes[static_cast<size_t>(d)];
    if (size == whole.dimension(d) && !op.OperandAxes(0, d).empty() && size != 1)
      size = op.operand(0)->shape().dimension(d);
  }
  bool any = false;
  std::vector<Instruction*> offsets, limits;
  for (const int64_t d : g.start_index_map) {
    const bool selected = op.KindOf(op.rule.operands[0][static_cast<size_t>(d)]) == FactorKind::kSelected;
    const AxisList& axes = op.OperandAxes(0, d);
    const bool cut = selected && !axes.empty();
    any |= cut;
    offsets.push_back(cut ? op.build.StartOf(axes, {0, op.operand(0)->shape().dimension(d)})
                          : op.build.Zero(ElementType::kS32));
    limits.push_back(op.build.Make().ScalarConstant(
        ElementType::kS32, whole.dimension(d) - op.original.As<attr::Gather>().slice_sizes[static_cast<size_t>(d)]));
  }
  if (!any) return;
  hlo::Builder b = op.build.Make();
  Instruction* indices = op.operand(1);
  const int64_t most = *std::max_element(whole.dimensions().begin(), whole.dimensions().end());
  indices = ClampedIndex(b, indices, most);
  indices = b.Binary(Opcode::kMinimum, indices, PerComponent(b, indices, g.index_vector_dim, limits));
  indices = b.Binary(Opcode::kSubtract, indices, PerComponent(b, indices, g.index_vector_dim, offsets));
  Instruction* is_mine = nullptr;
  for (size_t c = 0; c < g.start_index_map.size(); ++c) {
    const int64_t d = g.start_index_map[c];
    if (op.KindOf(op.rule.operands[0][static_cast<size_t>(d)]) != FactorKind::kSelected || op.OperandAxes(0, d).empty())
      continue;
    Instruction* here = InHalfOpen(b, Component(op, indices, g.index_vector_dim, static_cast<int64_t>(c)),
                                   op.operand(0)->shape().dimension(d));
    is_mine = is_mine == nullptr ? here : b.Binary(Opcode::kAnd, is_mine, here);
  }
  std::vector<int64_t> batch_dims;
  for (int64_t d = 0; d < op.shapes[0].rank(); ++d) {
    if (std::find(g.offset_dims.begin(), g.offset_dims.end(), d) == g.offset_dims.end()) batch_dims.push_back(d);
  }
  g.indices_are_sorted = false;
  Instruction* gathered = b.Make(Opcode::kGather, {op.operand(0), indices}, op.attributes);
  Instruction* mask = b.Broadcast(is_mine, gathered->shape().dimensions(), batch_dims);
  Instruction* zeros = b.Broadcast(op.build.Zero(gathered->shape().element_type()), gathered->shape().dimensions(), {});
  op.done = b.Select(mask, gathered, zeros);
}

void AdaptScatter(LocalOp& op) {
  auto& s = std::get<attr::Scatter>(op.attributes);
  const int64_t arrays = (op.original.operand_count() - 1) / 2;
  bool any = false;
  std::vector<Instruction*> offsets;
  for (const int64_t d : s.scatter_dims_to_operand_dims) {
    const bool cut =
        op.KindOf(op.rule.operands[0][static_cast<size_t>(d)]) == FactorKind::kUpdated && !op.OperandAxes(0, d).empty();
    any |= cut;
    offsets.push_back(cut ? op.build.StartOf(op.OperandAxes(0, d), {0, op.operand(0)->shape().dimension(d)})
                          : op.build.Zero(ElementType::kS32));
  }
  if (any) {
    // What becomes negative or too large is another device's, and dropped.
    hlo::Builder b = op.build.Make();
    Instruction* indices = op.operand(arrays);
    const ElementType type = hlo::BitsOf(indices->shape().element_type()) <= 32 ? ElementType::kS32 : ElementType::kS64;
    if (indices->shape().element_type() != type) indices = b.Convert(indices, type);
    if (type == ElementType::kS64) {
      for (Instruction*& offset : offsets) offset = b.Convert(offset, type);
    }
    op.operand(arrays) = b.Binary(Opcode::kSubtract, indices, PerComponent(b, indices, s.index_vector_dim, offsets));
    s.indices_are_sorted = false;
  }
  const AxisList partial = PartialAxes(op.rule, op.axes);
  if (partial.empty()) return;
  // What the updates are added to counts once.
  hlo::Builder b = op.build.Make();
  Instruction*& into = op.operand(0);
  Instruction* first =
      b.Compare(op.build.Coordinate(partial), op.build.Zero(ElementType::kS32), ComparisonDirection::kEq);
  Instruction* identity = b.Constant(ReducerIdentity(*CombinerOf(op.original), into->shape().element_type()));
  into = b.Select(b.Broadcast(first, into->shape().dimensions(), {}), into,
                  b.Broadcast(identity, into->shape().dimensions(), {}));
}

}  // namespace hlorun::passes::spmd
