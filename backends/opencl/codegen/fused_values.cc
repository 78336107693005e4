#include "backends/opencl/codegen/fused_values.h"

#include <algorithm>

#include "backends/opencl/codegen/fused_ops.h"
#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using ir::Expr;

bool IsScalarConstant(const Instruction& op) {
  return op.IsConstant() && op.shape().IsArray() && (op.shape().ElementCount() <= 1 || op.literal().IsAllSame());
}

}  // namespace

void FusedValues::Open() {
  body_.Open();
  memo_.emplace_back();
}

ir::Stmt FusedValues::Close() {
  memo_.pop_back();
  return body_.Close();
}

void FusedValues::SerialLoop(int64_t extent, const std::function<void(const Index&)>& body) {
  if (extent == 1) return body(0);
  SerialLoop(extent, ir::Int(extent, math_.type()), body);
}

void FusedValues::SerialLoop(int64_t extent, const Expr& end, const std::function<void(const Index&)>& body) {
  const ir::Type type = math_.type();
  const ir::Var variable = ir::MakeIndex(body_.FreshName("k"), 0, extent - 1, type);
  Open();
  body(math_.Of(variable));
  body_.Add(ir::For(ir::LoopRole::kSerial, variable, ir::Int(0, type), end, Close()));
}

void FusedValues::SerialLoops(const hlo::Dims& extents, const std::function<void(const Indices&)>& body) {
  Indices at;
  const std::function<void(size_t)> next = [&](size_t d) {
    if (d == extents.size()) return body(at);
    SerialLoop(extents[d], [&](const Index& i) {
      at.push_back(i);
      next(d + 1);
      at.pop_back();
    });
  };
  next(0);
}

Expr FusedValues::Both(const Expr& mask, const Expr& other) {
  if (!other || (ir::IsConstant(other) && other->integer != 0)) return mask;
  return mask ? body_.Name(ir::And(mask, other), "m") : body_.Name(other, "m");
}

Index FusedValues::RuntimeIndex(const Value& value, int64_t limit) {
  Expr x = value.re;
  const int bits = hlo::BitsOf(x->type.element);
  if (bits < 32) x = ir::Cast(x, hlo::ElementType::kS32);
  if (hlo::IsSigned(x->type.element)) x = ir::Max(x, ir::Zero(x->type));
  const bool unsigned_32 = x->type.element == hlo::ElementType::kU32;
  const int64_t highest = unsigned_32                                 ? INT64_C(0xffffffff)
                          : x->type.element == hlo::ElementType::kS32 ? INT32_MAX
                                                                      : INT64_MAX;
  if (limit < highest) x = ir::Min(x, ir::Int(limit, x->type));
  x = ir::Cast(x, math_.type().element);
  if (ir::IsConstant(x)) return x->integer;
  const ir::Var variable = ir::MakeIndex(body_.FreshName("at"), 0, limit, math_.type());
  body_.Add(ir::Let(variable, x));
  return math_.Of(variable);
}

Index FusedValues::RuntimeIndex(const Value& value) {
  const Expr x = ir::Cast(value.re, math_.type().element);
  if (ir::IsConstant(x)) return x->integer;
  const ir::Var variable = ir::MakeVar(body_.FreshName("at"), math_.type());
  body_.Add(ir::Let(variable, x));
  return math_.Of(variable);
}

void FusedValues::Remember(const Frame& frame, const Instruction& instruction, const Indices& index, Values values) {
  memo_.back()[Key{&frame, &instruction, index, nullptr}] = std::move(values);
}

Values FusedValues::GetAll(const Frame& frame, const Instruction& instruction, const Indices& index, const Expr& mask) {
  // Values that touch no memory do not depend on the mask.
  for (const Expr& m : {mask, Expr()}) {
    const Key key{&frame, &instruction, index, m.get()};
    for (auto scope = memo_.rbegin(); scope != memo_.rend(); ++scope) {
      if (const auto found = scope->find(key); found != scope->end()) return found->second;
    }
  }
  if (mask) kept_.push_back(mask);
  Values values = Compute(frame, instruction, index, mask);
  memo_.back()[Key{&frame, &instruction, index, mask.get()}] = values;
  return values;
}

void FusedValues::Keep(const Frame& frame, const Instruction& instruction, Frame::Binding binding) {
  const auto found = std::find_if(frames_.begin(), frames_.end(), [&](const Frame& f) { return &f == &frame; });
  HLORUN_CHECK(found != frames_.end());
  found->Bind(&instruction, std::move(binding));
}

Value FusedValues::LoadElement(const Frame::InMemory& memory, const hlo::Shape& shape, const Indices& index,
                               const Expr& mask) {
  const ir::BufferRef& buffer = memory.buffer;
  Indices places;
  hlo::Dims sizes;
  for (const size_t d : memory.dimensions) {
    places.push_back(index[d]);
    sizes.push_back(shape.dimension(static_cast<int64_t>(d)));
  }
  const Expr at =
      memory.dimensions.empty() ? StoreIndex(math_, shape, index) : math_.ToExpr(math_.Linearize(places, sizes));
  if (!hlo::IsComplex(shape.element_type())) return {body_.Name(ir::Load(buffer, at, mask)), nullptr};
  const Expr re = body_.Name(at * 2);
  return {body_.Name(ir::Load(buffer, re, mask)), body_.Name(ir::Load(buffer, re + 1, mask))};
}

const Frame& FusedValues::Enter(const Frame& frame, const Instruction& fusion) {
  const Frame*& inner = entered_[{&frame, &fusion}];
  if (inner == nullptr) {
    Frame& entered = NewFrame();
    for (int64_t i = 0; i < fusion.operand_count(); ++i) {
      entered.Bind(fusion.called()->parameter(i), Frame::Outer{&frame, fusion.operand(i)});
    }
    inner = &entered;
  }
  return *inner;
}

Values FusedValues::Compute(const Frame& frame, const Instruction& op, const Indices& index, const Expr& mask) {
  // Nobody asks for it, and the place may be none of its.
  if (mask && IsIntConstant(mask, 0)) {
    Values nothing;
    for (const hlo::Shape& leaf : hlo::FlattenShape(op.shape())) nothing.push_back(ZeroOf(leaf.element_type()));
    return nothing;
  }
  if (const Frame::Binding* binding = frame.Find(&op)) {
    if (const auto* memory = std::get_if<Frame::InMemory>(binding))
      return {LoadElement(*memory, op.shape(), index, mask)};
    if (const auto* outer = std::get_if<Frame::Outer>(binding))
      return GetAll(*outer->frame, *outer->instruction, index, mask);
    if (const auto* computed = std::get_if<Frame::Computed>(binding)) return (*computed)(index, mask);
    return std::get<Values>(*binding);
  }
  if (op.IsConstant()) {
    if (IsScalarConstant(op)) return {ConstantValue(op.literal(), 0)};
    Fail(ErrorCode::kUnimplemented, "{}: an array constant inside a fusion has no kernel; it must be an operand",
         op.name());
  }
  if (op.Is(Opcode::kFusion) || op.Is(Opcode::kCall)) {
    return GetAll(Enter(frame, op), *op.called()->root(), index, mask);
  }
  if (IsElementwise(op)) {
    Values operands;
    for (const Instruction* operand : op.operands()) {
      operands.push_back(Get(frame, *operand, operand->shape().rank() == 0 ? Indices{} : index, mask));
    }
    return {EmitElementwise(op, operands, body_)};
  }
  const OpRule rule = FusedRule(op.opcode());
  if (rule == nullptr)
    Fail(ErrorCode::kUnimplemented, "{}: {} has no kernel inside a fusion", op.name(), hlo::OpcodeName(op.opcode()));
  return rule(OpAt{*this, frame, op, index, mask});
}

Values FusedValues::Apply(const hlo::Computation& computation, Values arguments) {
  Frame& frame = NewFrame();
  HLORUN_CHECK(static_cast<int64_t>(arguments.size()) == computation.parameter_count());
  for (size_t i = 0; i < arguments.size(); ++i)
    frame.Bind(computation.parameter(static_cast<int64_t>(i)), Values{arguments[i]});
  const Instruction& root = *computation.root();
  if (!root.Is(Opcode::kTuple)) return GetAll(frame, root, {});
  Values results;
  for (const Instruction* element : root.operands()) results.push_back(Get(frame, *element, {}));
  return results;
}

ir::Expr StoreIndex(IndexMath& math, const hlo::Shape& shape, const Indices& index) {
  return math.ToExpr(math.Linearize(index, shape.dimensions()));
}

void StoreElement(FusedValues& values, const ir::BufferRef& buffer, const hlo::Shape& shape, const Indices& index,
                  const Value& value) {
  const Expr at = StoreIndex(values.math(), shape, index);
  if (!hlo::IsComplex(shape.element_type())) return values.body().Add(ir::Store(buffer, at, value.re));
  values.body().Add(ir::Store(buffer, at * 2, value.re));
  values.body().Add(ir::Store(buffer, at * 2 + 1, value.im));
}

bool CanInline(const Instruction& op) {
  if (op.Is(Opcode::kParameter)) return true;
  if (op.IsConstant()) return IsScalarConstant(op);
  if (op.Is(Opcode::kTuple) || op.Is(Opcode::kGetTupleElement)) return true;
  if (IsElementwise(op)) return true;
  if (!op.Is(Opcode::kFusion) && !op.Is(Opcode::kCall) && FusedRule(op.opcode()) == nullptr) return false;
  for (const hlo::Computation* called : op.called_computations()) {
    for (const auto& inner : called->instructions()) {
      if (!CanInline(*inner)) return false;
    }
  }
  return true;
}

}  // namespace hlorun::opencl
