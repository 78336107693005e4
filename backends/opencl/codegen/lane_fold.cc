#include "backends/opencl/codegen/lane_fold.h"

#include <algorithm>

#include "backends/opencl/codegen/reducers.h"
#include "hlo/builder.h"

namespace hlorun::opencl {
namespace {

using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;
using ir::Expr;

// Fewer vectors are not worth the joining of their lanes.
constexpr int64_t kFewestVectors = 4;

struct Fold {
  Opcode opcode;
  ElementType type;  // of the running value
  int64_t count;
  std::function<Value(const Index&)> element;
  std::function<Value(const Value&)> finish;
};

// The only one of `dims` that is longer than 1; nullopt where there are more, or none.
std::optional<int64_t> OnlyLong(const hlo::Shape& shape, const std::vector<int64_t>& dims) {
  std::optional<int64_t> found;
  for (const int64_t d : dims) {
    if (shape.dimension(d) == 1) continue;
    if (found) return std::nullopt;
    found = d;
  }
  return found;
}

Indices At(const hlo::Shape& shape, int64_t dimension, const Index& index) {
  Indices at(static_cast<size_t>(shape.rank()), Index(0));
  at[static_cast<size_t>(dimension)] = index;
  return at;
}

std::optional<Fold> FoldOfReduce(Emission& e, const Frame& frame, const Instruction& reduce) {
  if (!HasLanes(reduce)) return std::nullopt;
  const hlo::Shape& shape = reduce.operand(0)->shape();
  const std::optional<int64_t> d = OnlyLong(shape, reduce.dimensions());
  if (!d) return std::nullopt;
  const Opcode opcode = *hlo::ReducerOpcode(*reduce.called());
  const ElementType type = reduce.shape().element_type();
  return Fold{opcode, type, shape.dimension(*d),
              [&e, &frame, &reduce, d](const Index& i) {
                return e.values().Get(frame, *reduce.operand(0), At(reduce.operand(0)->shape(), *d, i));
              },
              [&e, &frame, &reduce, opcode, type](const Value& total) {
                return EmitBinary(opcode, type, e.values().Get(frame, *reduce.operand(1), {}), total, e.body());
              }};
}

std::optional<Fold> FoldOfDot(Emission& e, const Frame& frame, const Instruction& product) {
  const auto& dot = product.As<hlo::attr::Dot>();
  const ElementType type = product.shape().element_type();
  const auto is_type = [&](const Instruction* x) { return x->shape().element_type() == type; };
  if ((type != ElementType::kF32 && type != ElementType::kF64) ||
      !std::all_of(product.operands().begin(), product.operands().end(), is_type)) {
    return std::nullopt;
  }
  const std::optional<int64_t> l = OnlyLong(product.operand(0)->shape(), dot.lhs_contracting),
                               r = OnlyLong(product.operand(1)->shape(), dot.rhs_contracting);
  if (!l || !r) return std::nullopt;
  return Fold{Opcode::kAdd, type, product.operand(0)->shape().dimension(*l),
              [&e, &frame, &product, l, r, type](const Index& i) {
                const Instruction &x = *product.operand(0), &y = *product.operand(1);
                return EmitBinary(Opcode::kMultiply, type, e.values().Get(frame, x, At(x.shape(), *l, i)),
                                  e.values().Get(frame, y, At(y.shape(), *r, i)), e.body());
              },
              [](const Value& total) { return total; }};
}

Value Folded(Emission& e, const Fold& fold) {
  const int64_t lanes = e.Lanes(), whole = fold.count / lanes;
  const ir::BufferRef sums = e.PrivateArray("lanes", PartialType(fold.type), lanes);
  sums->unordered = true;
  const auto for_lanes = [&](const std::function<void(const Index&, const Expr&)>& body) {
    const auto lane = [&](const Index& l) { body(l, e.math().ToExpr(l)); };
    e.body().Add(LoopOfLanes(e, lanes, e.Lanes(), lane));
  };
  const auto both = [&](const Value& x, const Value& y) { return EmitBinary(fold.opcode, fold.type, x, y, e.body()); };
  for_lanes(
      [&](const Index&, const Expr& l) { e.body().Add(ir::Store(sums, l, NeutralOf(fold.opcode, fold.type)->re)); });
  e.values().SerialLoop(whole, [&](const Index& c) {
    for_lanes([&](const Index& index, const Expr& l) {
      const Value element = fold.element(e.math().Add(e.math().Mul(c, lanes), index));
      e.body().Add(ir::Store(sums, l, both({e.body().Name(ir::Load(sums, l)), nullptr}, element).re));
    });
  });
  const Expr all = e.body().Name(ir::Load(sums, ir::Ramp(e.IndexInt(0), lanes)));
  const Value joined = JoinVector(fold.opcode, fold.type, all, e.body());
  if (whole * lanes == fold.count) return joined;
  const ir::Var total = e.body().Mutable(joined.re);
  e.values().SerialLoop(fold.count - whole * lanes, [&](const Index& i) {
    const Value element = fold.element(e.math().Add(i, whole * lanes));
    e.body().Add(ir::Assign(total, both({ir::Ref(total), nullptr}, element).re));
  });
  return {ir::Ref(total), nullptr};
}

}  // namespace

ir::Stmt LoopOfLanes(Emission& e, int64_t count, int width, const std::function<void(const Index&)>& body) {
  const ir::Var l = e.IndexVar(e.body().FreshName("l"), count);
  e.values().Open();
  body(e.math().Of(l));
  return ir::For(ir::LoopRole::kVector, l, e.IndexInt(0), e.IndexInt(count), e.values().Close(), 1, width);
}

Value JoinVector(Opcode opcode, ElementType type, Expr vector, Body& body) {
  while (vector->type.lanes > 1) {
    const Expr lower = body.Name(ir::Half(vector, ir::kLowerHalf)), upper = body.Name(ir::Half(vector, ir::kUpperHalf));
    vector = body.Name(EmitBinary(opcode, type, {lower, nullptr}, {upper, nullptr}, body).re);
  }
  return {vector, nullptr};
}

void FoldInLanes(Emission& e, const Frame& frame, const Instruction& op) {
  if (frame.Find(&op) != nullptr) return;  // memory has it, and the frame nothing that it is made of
  const ElementType type = op.shape().IsArray() ? op.shape().element_type() : ElementType::kPred;
  if (e.Lanes() < 2 || hlo::IsComplex(type) || type == ElementType::kPred || op.shape().ElementCount() != 1) return;
  std::optional<Fold> fold;
  if (op.Is(Opcode::kReduce)) fold = FoldOfReduce(e, frame, op);
  if (op.Is(Opcode::kDot)) fold = FoldOfDot(e, frame, op);
  if (!fold || fold->count < kFewestVectors * e.Lanes()) return;
  const Indices here(static_cast<size_t>(op.shape().rank()), Index(0));
  e.values().Remember(frame, op, here, {fold->finish(Folded(e, *fold))});
}

}  // namespace hlorun::opencl
