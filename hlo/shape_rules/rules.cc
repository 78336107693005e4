#include "hlo/shape_rules/rules.h"

#include <algorithm>

#include "hlo/shape_inference.h"

namespace hlorun::hlo::shape_rules {

Shape Query::Declared() const {
  if (!has_declared()) Reject("its shape cannot be inferred and must be given");
  return declared.WithoutLayout();
}

const Shape& Query::Array(int64_t i) const {
  RequireOperands(i + 1);
  const Shape& shape = operand(i);
  if (!shape.IsArray()) Reject("operand {} must be an array, but is {}", i, shape.ToString(false));
  return shape;
}

void Query::RequireOperands(int64_t least) const {
  if (operand_count() < least) Reject("needs at least {} operands, but has {}", least, operand_count());
}

void Query::RequireCalled(size_t count) const {
  if (called.size() != count) Reject("needs {} called computation(s), but has {}", count, called.size());
}

ProgramShape Query::Signature(size_t i, int64_t parameters) const {
  if (i >= called.size()) Reject("needs at least {} called computation(s), but has {}", i + 1, called.size());
  const Computation& computation = *called[i];
  if (computation.root() == nullptr) Reject("computation {} has no root", computation.name());
  if (computation.parameter_count() != parameters) {
    Reject("computation {} must have {} parameter(s), but has {}", computation.name(), parameters,
           computation.parameter_count());
  }
  for (const Instruction* parameter : computation.parameters()) {
    if (parameter == nullptr) Reject("computation {} lacks a parameter", computation.name());
  }
  return computation.program_shape();
}

void CopyDynamic(const Shape& from, Shape* to) {
  for (int64_t i = 0; i < std::min(from.rank(), to->rank()); ++i) {
    if (from.is_dynamic_dimension(i)) to->set_dynamic_dimension(i, true);
  }
}

void CheckDimensionNumbers(const Query& q, std::string_view what, std::span<const int64_t> dimensions, int64_t rank) {
  for (size_t i = 0; i < dimensions.size(); ++i) {
    if (dimensions[i] < 0 || dimensions[i] >= rank) {
      q.Reject("{} names dimension {}, but the rank is {}", what, dimensions[i], rank);
    }
    if (Contains(dimensions.first(i), dimensions[i])) q.Reject("{} names dimension {} twice", what, dimensions[i]);
  }
}

ElementType HigherPrecision(ElementType a, ElementType b) { return BitsOf(b) > BitsOf(a) ? b : a; }

bool SameTypeIgnoringPrecision(ElementType a, ElementType b) { return a == b || (IsFloating(a) && IsFloating(b)); }

Shape WindowedShape(const Query& q, const Shape& base, std::span<const WindowDimension> window) {
  if (static_cast<int64_t>(window.size()) != base.rank()) {
    q.Reject("the window has {} dimensions, but the operand {} has {}", window.size(), base.ToString(false),
             base.rank());
  }
  Shape result = base.WithoutLayout();
  for (size_t i = 0; i < window.size(); ++i) {
    const WindowDimension& w = window[i];
    if (w.size <= 0 || w.stride <= 0 || w.window_dilation <= 0 || w.base_dilation <= 0) {
      q.Reject("window dimension {}: size {}, stride {} and dilations {}, {} must all be positive", i, w.size, w.stride,
               w.window_dilation, w.base_dilation);
    }
    const int64_t size = WindowedSize(base.dimension(static_cast<int64_t>(i)), w);
    result.mutable_dimensions()[i] = size;
  }
  return result;
}

std::vector<ElementType> ReducerTypes(const Query& q, size_t computation, std::span<const ElementType> operands) {
  const auto n = static_cast<int64_t>(operands.size());
  const ProgramShape signature = q.Signature(computation, 2 * n);
  const std::string& name = q.called[computation]->name();
  const std::vector<Shape> results =
      signature.result.IsTuple() ? signature.result.tuple_shapes() : std::vector<Shape>{signature.result};
  if (static_cast<int64_t>(results.size()) != n) {
    q.Reject("reducer {} must return {} scalar(s), but returns {}", name, n, signature.result.ToString(false));
  }
  std::vector<ElementType> types;
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<size_t>(i);
    const Shape& accumulator = signature.parameters[at];
    const Shape& value = signature.parameters[at + operands.size()];
    if (!results[at].IsScalar() || !accumulator.SameAs(results[at])) {
      q.Reject("reducer {}: result {} is {}, but parameter {}, which accumulates it, is {}", name, i,
               results[at].ToString(false), i, accumulator.ToString(false));
    }
    if (!value.IsScalar() || !SameTypeIgnoringPrecision(value.element_type(), operands[at])) {
      q.Reject("reducer {}: parameter {} is {}, but the elements reduced are {}[]", name, i + n, value.ToString(false),
               ElementTypeName(operands[at]));
    }
    types.push_back(results[at].element_type());
  }
  return types;
}

Shape OneOrTuple(std::vector<Shape> shapes) {
  return shapes.size() == 1 ? std::move(shapes.front()) : Shape::Tuple(std::move(shapes));
}

}  // namespace hlorun::hlo::shape_rules
