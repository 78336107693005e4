// Products, reductions and iota.
#include "hlo/builder.h"
#include "passes/expand/reducer_identity.h"
#include "passes/spmd/local_op.h"

namespace hlorun::passes::spmd {

using hlo::Instruction;
using hlo::Opcode;

void MaskReduced(LocalOp& op, int64_t i, Instruction* fill) {
  const hlo::Shape& whole = op.WholeOperand(i);
  for (int64_t d = 0; d < whole.rank(); ++d) {
    const FactorRule::Dimension& dimension = op.rule.operands[static_cast<size_t>(i)][static_cast<size_t>(d)];
    const AxisList& axes = op.OperandAxes(i, d);
    if (axes.empty() || op.KindOf(dimension) != FactorKind::kReduced) continue;
    const PartStart start{0, op.operand(i)->shape().dimension(d)};
    op.operand(i) = op.build.Mask(op.operand(i), d, axes, start, 0, whole.dimension(d), fill);
  }
}

// Both sides: zero times what padding holds may be a NaN.
void AdaptDot(LocalOp& op) {
  for (int64_t i = 0; i < 2; ++i) MaskReduced(op, i, op.build.Zero(op.operand(i)->shape().element_type()));
}

bool CountsOnce(Opcode reducer, const Instruction& init) {
  switch (reducer) {
    case Opcode::kMaximum:
    case Opcode::kMinimum:
    case Opcode::kAnd:
    case Opcode::kOr: return true;
    case Opcode::kAdd: return init.IsConstant() && init.literal() == hlo::Literal(init.shape());
    default: return false;
  }
}

// An init that changes something must count once, not once a part: the caller combines it with the reduced parts.
void AdaptReduce(LocalOp& op) {
  const int64_t arrays = op.original.operand_count() / 2;
  const std::optional<Opcode> reducer = CombinerOf(op.original);
  for (int64_t i = 0; i < arrays; ++i) {
    Instruction*& init = op.operand(arrays + i);
    if (reducer && !PartialAxes(op.rule, op.axes).empty() && !CountsOnce(*reducer, *init)) {
      init = op.build.Make().Constant(ReducerIdentity(*reducer, init->shape().element_type()));
    }
    MaskReduced(op, i, init);
  }
}

void AdaptIota(LocalOp& op) {
  const int64_t d = op.original.dimensions()[0];
  const AxisList& axes = op.ResultAxes(d);
  if (axes.empty()) return;
  hlo::Builder b = op.build.Make();
  const hlo::Shape& shape = op.shapes[0];
  Instruction* start = op.build.StartOf(axes, {0, shape.dimension(d)});
  // In s32, then converted: iota of a narrow type wraps as a whole one does.
  Instruction* position = b.Iota(hlo::Shape(hlo::ElementType::kS32, shape.dimensions()), d);
  position = b.Binary(Opcode::kAdd, position, b.Broadcast(start, shape.dimensions(), {}));
  op.done = shape.element_type() == hlo::ElementType::kS32 ? position : b.Convert(position, shape.element_type());
}

// iota < n, the mask of a dimension of which n elements are there: the part's own iota against the part's own size,
// which passes that look for masks know.
void AdaptCompare(LocalOp& op) {
  const Instruction& compare = op.original;
  const Instruction &iota = *compare.operand(0), &limit = *compare.operand(1);
  const bool is_mask = compare.As<hlo::attr::Compare>().direction == hlo::ComparisonDirection::kLt &&
                       iota.Is(Opcode::kIota) && iota.shape().element_type() == hlo::ElementType::kS32 &&
                       limit.Is(Opcode::kBroadcast) && limit.operand(0)->shape().IsScalar() &&
                       op.operand(1)->Is(Opcode::kBroadcast);
  if (!is_mask) return;
  const int64_t d = iota.dimensions()[0];
  const AxisList& axes = op.ResultAxes(d);
  if (axes.empty()) return;
  hlo::Builder b = op.build.Make();
  const hlo::Shape part(hlo::ElementType::kS32, op.shapes[0].dimensions());
  // Below zero there is nothing either, and the difference cannot wrap.
  Instruction* whole =
      b.Binary(Opcode::kMaximum, op.operand(1)->operand(0), b.ScalarConstant(hlo::ElementType::kS32, 0));
  Instruction* size = b.Binary(Opcode::kSubtract, whole, op.build.StartOf(axes, {0, part.dimension(d)}));
  op.done = b.Compare(b.Iota(part, d), b.Broadcast(size, part.dimensions(), {}), hlo::ComparisonDirection::kLt);
}

}  // namespace hlorun::passes::spmd
