#include "passes/dynamic/op_lowering.h"

#include <array>
#include <limits>
#include <utility>

#include "hlo/error.h"

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

Shape StaticShape(const Shape& shape) {
  Shape result = shape;
  for (Shape& element : result.mutable_tuple_shapes()) element = StaticShape(element);
  for (int64_t d = 0; d < result.rank(); ++d) {
    if (result.is_dynamic_dimension(d)) result.set_dynamic_dimension(d, false);
  }
  return result;
}

bool OpLowering::AnySized() const { return AnySized(0, operand_count()); }

bool OpLowering::AnySized(int64_t first, int64_t end) const {
  for (int64_t i = first; i < end; ++i) {
    if (operand(i).IsSized()) return true;
  }
  return false;
}

std::vector<Instruction*> OpLowering::Values() const {
  std::vector<Instruction*> values;
  for (const SizedValue* operand : operands_) values.push_back(operand->value);
  return values;
}

Instruction* OpLowering::Clone() { return Clone(Values()); }

Instruction* OpLowering::Clone(std::vector<Instruction*> operands) {
  return Clone(StaticShape(op.shape()), std::move(operands));
}

Instruction* OpLowering::Clone(const Shape& shape, std::vector<Instruction*> operands) {
  // Appended through the builder's computation, so that it follows what the rule has built.
  auto clone = op.CloneWithOperands(shape, std::move(operands));
  return build.computation()->Add(std::move(clone));
}

SizedValue OpLowering::Unsized(Instruction* value) const {
  return {value, std::vector<Instruction*>(static_cast<size_t>(value->shape().rank()), nullptr), {}};
}

SizedValue OpLowering::FromLeaves(Instruction* value, const std::vector<std::vector<Instruction*>>& sizes) {
  if (!value->shape().IsTuple()) return {value, sizes[0], {}};
  SizedValue result{value, {}, {}};
  for (size_t i = 0; i < value->shape().tuple_shapes().size(); ++i) {
    result.elements.push_back({build.GetTupleElement(value, static_cast<int64_t>(i)), sizes[i], {}});
  }
  return result;
}

Instruction* OpLowering::Clamp(Instruction* x, int64_t low, int64_t high) {
  const auto most = x->frontend_attributes.find(kMostAttribute);
  if (low <= 0 && most != x->frontend_attributes.end() && std::stoll(most->second) <= high) return x;
  return AtLeast(AtMost(x, high), low);
}

Instruction* OpLowering::SizeOrBound(int64_t operand_number, int64_t d) {
  Instruction* size = operand(operand_number).size(d);
  return size != nullptr ? size : Int(OperandShape(operand_number).dimension(d));
}

Instruction* OpLowering::Unify(Instruction* x, Instruction* y) {
  if (x == nullptr || x == y) return y;
  if (y == nullptr) return x;
  return unify_(build, x, y);
}

Instruction* OpLowering::Windowed(Instruction* size, const hlo::WindowDimension& w) {
  if (w == hlo::WindowDimension{}) return size;
  Instruction* dilated = size;
  if (w.base_dilation > 1) dilated = AtLeast(AddInt(Multiply(AddInt(size, -1), w.base_dilation), 1), 0);
  const int64_t window = (w.size - 1) * w.window_dilation + 1;
  // Rounds down also below zero, where there is no output.
  Instruction* room = AddInt(dilated, w.padding_low + w.padding_high - window + w.stride);
  return Divide(AtLeast(room, 0), w.stride);
}

Instruction* OpLowering::AsS32(Instruction* places) {
  const hlo::ElementType type = places->shape().element_type();
  const Shape shape = places->shape();
  const bool may_be_beyond = type == hlo::ElementType::kU32 || hlo::BitsOf(type) > 32;
  if (may_be_beyond)
    places = build.Binary(Opcode::kMinimum, places, build.Splat(shape, int64_t{std::numeric_limits<int32_t>::max()}));
  if (may_be_beyond && hlo::IsSigned(type))
    places = build.Binary(Opcode::kMaximum, places, build.Splat(shape, int64_t{-1}));
  return build.Convert(places, hlo::ElementType::kS32);
}

Instruction* OpLowering::Inside(const hlo::Dims& dimensions, int64_t d, Instruction* size) {
  Instruction* iota = build.Iota(Shape(hlo::ElementType::kS32, dimensions), d);
  return build.Compare(iota, build.Broadcast(size, dimensions, {}), hlo::ComparisonDirection::kLt);
}

Instruction* OpLowering::MaskDimension(Instruction* x, int64_t d, Instruction* size, Instruction* fill) {
  const hlo::Dims& dimensions = x->shape().dimensions();
  return build.Select(Inside(dimensions, d, size), x, build.Broadcast(fill, dimensions, {}));
}

Instruction* OpLowering::Zero(hlo::ElementType type) { return build.ScalarConstant(type, int64_t{0}); }

void OpLowering::Refuse(const std::string& what) const {
  const std::string source = op.module() != nullptr ? op.module()->SourceOf(op) : "";
  Fail(ErrorCode::kUnimplemented, "%{}: {} {}{}{}", op.name(), hlo::OpcodeName(op.opcode()), what,
       source.empty() ? "" : "; from ", source);
}

LoweringRule LoweringRuleOf(Opcode opcode) {
  if (hlo::HasTrait(opcode, hlo::kElementwise)) return LowerElementwise;
  static constexpr std::pair<Opcode, LoweringRule> kRules[] = {
      {Opcode::kAllReduce, LowerElementwise},
      {Opcode::kBatchNormInference, LowerElementwise},
      {Opcode::kBitcastConvert, LowerBitcastConvert},
      {Opcode::kBroadcast, LowerBroadcast},
      {Opcode::kCholesky, LowerBatched},
      {Opcode::kClamp, LowerElementwise},
      {Opcode::kCollectivePermute, LowerElementwise},
      {Opcode::kConcatenate, LowerConcatenate},
      {Opcode::kConvolution, LowerConvolution},
      {Opcode::kCustomCall, LowerCustomCall},
      {Opcode::kDot, LowerDot},
      {Opcode::kDynamicReshape, LowerDynamicReshape},
      {Opcode::kDynamicSlice, LowerDynamicSlice},
      {Opcode::kDynamicUpdateSlice, LowerDynamicUpdateSlice},
      {Opcode::kFft, LowerBatched},
      {Opcode::kGather, LowerGather},
      {Opcode::kGetDimensionSize, LowerGetDimensionSize},
      {Opcode::kMap, LowerElementwise},
      {Opcode::kPad, LowerPad},
      {Opcode::kReduce, LowerReduce},
      {Opcode::kReduceWindow, LowerReduceWindow},
      {Opcode::kReshape, LowerReshape},
      {Opcode::kReverse, LowerReverse},
      {Opcode::kScatter, LowerScatter},
      {Opcode::kSelectAndScatter, LowerSelectAndScatter},
      {Opcode::kSetDimensionSize, LowerSetDimensionSize},
      {Opcode::kSlice, LowerSlice},
      {Opcode::kSort, LowerSort},
      {Opcode::kTranspose, LowerTranspose},
      {Opcode::kTriangularSolve, LowerBatched},
  };
  for (const auto& [with, rule] : kRules) {
    if (with == opcode) return rule;
  }
  return nullptr;
}

}  // namespace hlorun::passes
