#include "hlo/builder.h"

#include "hlo/module.h"
#include "hlo/reducing_opcode.h"
#include "hlo/shape_inference.h"

namespace hlorun::hlo {

Instruction* Builder::Make(Opcode opcode, std::vector<Instruction*> operands, Attributes attributes,
                           std::vector<Computation*> called, const Shape& declared) {
  Shape shape = InferShape(opcode, operands, attributes, called, declared);
  auto instruction = std::make_unique<Instruction>(opcode, std::move(shape), std::move(operands), std::move(attributes),
                                                   std::move(called));
  if (origin_ != nullptr) instruction->metadata = origin_->metadata;
  return computation_->Add(std::move(instruction), before);
}

Instruction* Builder::Unary(Opcode opcode, Instruction* x) { return Make(opcode, {x}); }

Instruction* Builder::Binary(Opcode opcode, Instruction* x, Instruction* y) { return Make(opcode, {x, y}); }

Instruction* Builder::Compare(Instruction* x, Instruction* y, ComparisonDirection direction) {
  return Make(Opcode::kCompare, {x, y}, attr::Compare{direction, std::nullopt});
}

Instruction* Builder::Select(Instruction* predicate, Instruction* on_true, Instruction* on_false) {
  return Make(Opcode::kSelect, {predicate, on_true, on_false});
}

Instruction* Builder::Convert(Instruction* x, ElementType type) {
  Shape declared = x->shape();
  declared.set_element_type(type);
  return Make(Opcode::kConvert, {x}, attr::None{}, {}, declared);
}

Instruction* Builder::Constant(Literal value) {
  const Shape shape = value.shape();
  return Make(Opcode::kConstant, {}, attr::Constant{std::move(value), false}, {}, shape);
}

Instruction* Builder::Broadcast(Instruction* x, const Dims& result_dimensions, std::vector<int64_t> dimensions) {
  Shape declared(x->shape().element_type(), result_dimensions);
  for (size_t i = 0; i < dimensions.size() && static_cast<int64_t>(i) < x->shape().rank(); ++i) {
    const bool in_range = dimensions[i] >= 0 && dimensions[i] < declared.rank();
    if (in_range && x->shape().is_dynamic_dimension(static_cast<int64_t>(i))) {
      declared.set_dynamic_dimension(dimensions[i], true);
    }
  }
  return Make(Opcode::kBroadcast, {x}, attr::Dimensions{std::move(dimensions)}, {}, declared);
}

Instruction* Builder::Reshape(Instruction* x, const Dims& dimensions) {
  return Make(Opcode::kReshape, {x}, attr::Reshape{}, {}, Shape(x->shape().element_type(), dimensions));
}

Instruction* Builder::Transpose(Instruction* x, std::vector<int64_t> permutation) {
  return Make(Opcode::kTranspose, {x}, attr::Dimensions{std::move(permutation)});
}

Instruction* Builder::Slice(Instruction* x, Dims starts, Dims limits, Dims strides) {
  return Make(Opcode::kSlice, {x}, attr::Slice{std::move(starts), std::move(limits), std::move(strides)});
}

Instruction* Builder::Pad(Instruction* x, Instruction* value, std::vector<PaddingDimension> padding) {
  return Make(Opcode::kPad, {x, value}, attr::Pad{std::move(padding)});
}

Instruction* Builder::Concatenate(std::vector<Instruction*> operands, int64_t dimension) {
  return Make(Opcode::kConcatenate, std::move(operands), attr::Dimensions{{dimension}});
}

Instruction* Builder::Iota(const Shape& shape, int64_t dimension) {
  return Make(Opcode::kIota, {}, attr::Dimensions{{dimension}}, {}, shape);
}

Instruction* Builder::Reverse(Instruction* x, std::vector<int64_t> dimensions) {
  return Make(Opcode::kReverse, {x}, attr::Dimensions{std::move(dimensions)});
}

Instruction* Builder::DynamicSlice(Instruction* x, std::vector<Instruction*> starts, Dims sizes) {
  starts.insert(starts.begin(), x);
  return Make(Opcode::kDynamicSlice, std::move(starts), attr::DynamicSlice{std::move(sizes)});
}

Instruction* Builder::DynamicUpdateSlice(Instruction* x, Instruction* update, std::vector<Instruction*> starts) {
  starts.insert(starts.begin(), {x, update});
  return Make(Opcode::kDynamicUpdateSlice, std::move(starts));
}

Instruction* Builder::UpdateSlice(Instruction* x, Instruction* update, const Dims& starts) {
  std::vector<Instruction*> constants;
  for (const int64_t start : starts) constants.push_back(ScalarConstant(ElementType::kS64, start));
  return DynamicUpdateSlice(x, update, std::move(constants));
}

Instruction* Builder::Dot(Instruction* lhs, Instruction* rhs, attr::Dot attributes, ElementType type) {
  // Only the element type of the declared shape counts.
  return Make(Opcode::kDot, {lhs, rhs}, std::move(attributes), {}, Shape::Scalar(type));
}

Instruction* Builder::Reduce(std::vector<Instruction*> operands, std::vector<Instruction*> inits,
                             std::vector<int64_t> dims, Computation* reducer) {
  operands.insert(operands.end(), inits.begin(), inits.end());
  return Make(Opcode::kReduce, std::move(operands), attr::Dimensions{std::move(dims)}, {reducer});
}

Instruction* Builder::Tuple(std::vector<Instruction*> elements) { return Make(Opcode::kTuple, std::move(elements)); }

Instruction* Builder::GetTupleElement(Instruction* tuple, int64_t index) {
  return Make(Opcode::kGetTupleElement, {tuple}, attr::TupleIndex{index});
}

Computation* MakeScalarComputation(Module* module, Opcode opcode, ElementType type) {
  Computation* computation = module->AddComputation(fmt::format("{}_{}", OpcodeName(opcode), ElementTypeName(type)));
  Instruction* x = computation->AddParameter(0, Shape::Scalar(type), "x");
  Instruction* y = computation->AddParameter(1, Shape::Scalar(type), "y");
  computation->set_root(Builder(computation).Binary(opcode, x, y));
  return computation;
}

namespace {

bool HasIdentity(Opcode opcode, ElementType type) {
  if (opcode == Opcode::kMaximum || opcode == Opcode::kMinimum) return !IsComplex(type);
  return opcode != Opcode::kAdd || type != ElementType::kF8E8M0FNU;
}

}  // namespace

std::optional<Opcode> ReducerOpcode(const Computation& computation) {
  const Instruction* root = computation.root();
  if (root == nullptr || computation.parameter_count() != 2 || root->operand_count() != 2) return std::nullopt;
  if (!IsReducing(root->opcode()) || !HasIdentity(root->opcode(), root->shape().element_type())) return std::nullopt;
  const Instruction* x = computation.parameter(0);
  const Instruction* y = computation.parameter(1);
  const bool forward = root->operand(0) == x && root->operand(1) == y;
  const bool backward = root->operand(0) == y && root->operand(1) == x;
  if (!forward && !backward) return std::nullopt;
  return root->opcode();
}

}  // namespace hlorun::hlo
