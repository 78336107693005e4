// Sizes at run time: which shape a result has when operands are smaller than their bounds.
#include <algorithm>

#include "hlo/elementwise.h"
#include "hlo/error.h"
#include "hlo/evaluator/op_functions.h"
#include "hlo/evaluator/strided_copy.h"
#include "hlo/shape_inference.h"

namespace hlorun::hlo {
namespace {

// Dimensions of the result that come from operand dimensions take their sizes; the rest keeps the declared ones.
Shape BroadcastShape(const Instruction& instruction, const Shape& operand) {
  Shape shape(instruction.shape().element_type(), instruction.shape().dimensions());
  const std::vector<int64_t>& dimensions = instruction.dimensions();
  for (size_t i = 0; i < dimensions.size(); ++i) {
    shape.mutable_dimensions()[static_cast<size_t>(dimensions[i])] = operand.dimensions()[i];
  }
  return shape;
}

// One dimension of a reshape's result may be dynamic: it takes what the others leave.
Shape ReshapeShape(const Instruction& instruction, const Shape& operand) {
  Shape shape(instruction.shape().element_type(), instruction.shape().dimensions());
  if (shape.ElementCount() == operand.ElementCount()) return shape;
  int64_t dynamic = -1;
  int64_t others = 1;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    const bool inferred = instruction.As<attr::Reshape>().inferred_dimension == d;
    if (instruction.shape().is_dynamic_dimension(d) && (dynamic < 0 || inferred)) {
      if (dynamic >= 0) others *= shape.dimension(dynamic);
      dynamic = d;
    } else {
      others *= shape.dimension(d);
    }
  }
  if (dynamic < 0 || others == 0 || operand.ElementCount() % others != 0) {
    Invalid("{}: {} elements do not fill {}", instruction.name(), operand.ElementCount(),
            instruction.shape().ToString(false));
  }
  shape.mutable_dimensions()[static_cast<size_t>(dynamic)] = operand.ElementCount() / others;
  return shape;
}

// A slice that takes the whole of a dynamic dimension takes its actual size.
Shape SliceShape(const Instruction& instruction, const Shape& operand) {
  Shape shape(instruction.shape().element_type(), instruction.shape().dimensions());
  const auto& slice = instruction.As<attr::Slice>();
  for (size_t d = 0; d < slice.starts.size(); ++d) {
    const int64_t limit = std::min(slice.limits[d], operand.dimensions()[d]);
    shape.mutable_dimensions()[d] =
        std::max<int64_t>(0, (limit - slice.starts[d] + slice.strides[d] - 1) / slice.strides[d]);
  }
  return shape;
}

Shape SizedShape(const Instruction& instruction, std::span<const Literal> operands) {
  Shape shape(instruction.shape().element_type(), instruction.shape().dimensions());
  const auto first = instruction.Is(Opcode::kSetDimensionSize) ? size_t{0} : size_t{1};
  if (first == 0) shape.mutable_dimensions() = operands[0].shape().dimensions();
  for (size_t i = 1; i < operands.size(); ++i) {
    const auto d = first == 0 ? static_cast<size_t>(instruction.dimensions()[0]) : i - 1;
    const int64_t bound = instruction.shape().dimensions()[d];
    const int64_t size = operands[i].GetInt(0);
    if (size < 0 || size > bound) {
      Invalid("{}: size {} of dimension {} is outside 0 to its bound {}", instruction.name(), size, d, bound);
    }
    shape.mutable_dimensions()[d] = size;
  }
  return shape;
}

// Shape inference on parameters that have the actual shapes.
Shape InferredShape(const Instruction& instruction, std::span<const Literal> operands) {
  std::vector<std::unique_ptr<Instruction>> stand_ins;
  std::vector<Instruction*> pointers;
  for (const Literal& operand : operands) {
    stand_ins.push_back(std::make_unique<Instruction>(Opcode::kParameter, operand.shape(), std::vector<Instruction*>{},
                                                      attr::Parameter{}));
    pointers.push_back(stand_ins.back().get());
  }
  return InferShape(instruction.opcode(), pointers, instruction.attributes(), instruction.called_computations(),
                    instruction.shape().WithoutLayout());
}

// The first elements of each dimension; what a larger size adds is zero.
Literal Resized(const Literal& literal, const Dims& dimensions) {
  Literal result(Shape(literal.element_type(), dimensions));
  Dims common = dimensions;
  for (size_t d = 0; d < common.size(); ++d) common[d] = std::min(common[d], literal.shape().dimensions()[d]);
  CopyStrided(literal.data(), {0, literal.shape().Strides()}, result.mutable_data(), {0, result.shape().Strides()},
              common, BytesOf(literal.element_type()));
  return result;
}

bool MapsElements(const Instruction& instruction) { return IsElementwise(instruction) || instruction.Is(Opcode::kMap); }

// The operands that are smaller than the bound say how small; static ones reach up to it.
Shape ElementwiseShape(const Instruction& instruction, std::span<const Literal> operands) {
  Shape shape(instruction.shape().element_type(), instruction.shape().dimensions());
  for (const Literal& operand : operands) {
    if (operand.shape().rank() != shape.rank()) continue;
    for (size_t d = 0; d < shape.dimensions().size(); ++d) {
      shape.mutable_dimensions()[d] = std::min(shape.dimensions()[d], operand.shape().dimensions()[d]);
    }
  }
  return shape;
}

}  // namespace

Shape ActualShape(const Instruction& instruction, std::span<const Literal> operands) {
  const Shape& declared = instruction.shape();
  if (!declared.IsArray()) return declared;
  if (declared.IsStatic()) return {declared.element_type(), declared.dimensions()};
  if (MapsElements(instruction)) return ElementwiseShape(instruction, operands);
  switch (instruction.opcode()) {
    case Opcode::kBroadcast: return BroadcastShape(instruction, operands[0].shape());
    case Opcode::kReshape: return ReshapeShape(instruction, operands[0].shape());
    case Opcode::kSlice: return SliceShape(instruction, operands[0].shape());
    case Opcode::kSetDimensionSize:
    case Opcode::kDynamicReshape: return SizedShape(instruction, operands);
    case Opcode::kGetTupleElement:
    case Opcode::kParameter:
    case Opcode::kIota:
    case Opcode::kConstant: return {declared.element_type(), declared.dimensions()};
    default: return InferredShape(instruction, operands).WithoutLayout();
  }
}

void FillOperands(const Instruction& instruction, std::span<Literal> operands) {
  static constexpr Opcode kMoves[] = {Opcode::kSlice,     Opcode::kDynamicSlice, Opcode::kGather,
                                      Opcode::kBroadcast, Opcode::kTranspose,    Opcode::kReverse};
  if (!instruction.shape().IsStatic() ||
      std::find(std::begin(kMoves), std::end(kMoves), instruction.opcode()) == std::end(kMoves))
    return;
  Dims dimensions = instruction.operand(0)->shape().dimensions();
  // Places are clamped to the actual size, so that no more than a window is wanted.
  if (instruction.Is(Opcode::kGather) || instruction.Is(Opcode::kDynamicSlice)) {
    const Dims& window =
        instruction.Is(Opcode::kGather) ? instruction.As<attr::Gather>().slice_sizes : instruction.shape().dimensions();
    for (size_t d = 0; d < window.size(); ++d) dimensions[d] = std::max(operands[0].shape().dimensions()[d], window[d]);
  }
  if (operands[0].shape().dimensions() != dimensions) operands[0] = Resized(operands[0], dimensions);
}

void CropOperands(const Instruction& instruction, const Shape& actual, std::span<Literal> operands) {
  if (!actual.IsArray() || instruction.shape().IsStatic() || !MapsElements(instruction)) return;
  for (Literal& operand : operands) {
    const Shape& whole = operand.shape();
    if (whole.rank() != actual.rank() || whole.dimensions() == actual.dimensions()) continue;
    operand = Resized(operand, actual.dimensions());
  }
}

Literal EvaluateGetDimensionSize(OpCall& call) {
  Literal result(call.shape);
  result.SetInt(0, call.operand(0).shape().dimension(call.instruction.dimensions()[0]));
  return result;
}

Literal EvaluateSetDimensionSize(OpCall& call) {
  const auto d = static_cast<size_t>(call.instruction.dimensions()[0]);
  const int64_t bound = call.instruction.shape().dimensions()[d];
  Dims dimensions = call.operand(0).shape().dimensions();
  dimensions[d] = call.operand(1).GetInt(0);
  if (dimensions[d] < 0 || dimensions[d] > bound) {
    Invalid("{}: size {} of dimension {} is outside 0 to its bound {}", call.instruction.name(), dimensions[d], d,
            bound);
  }
  return Resized(call.operand(0), dimensions);
}

}  // namespace hlorun::hlo
