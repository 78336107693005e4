// Shapes of reduce, reduce-window, select-and-scatter, sort, topk and scan.
#include "hlo/shape_rules/rules.h"

namespace hlorun::hlo::shape_rules {
namespace {

// Operands 0 .. n-1 are arrays of the same dimensions, n .. 2n-1 are their initial scalars. Returns their types.
std::vector<ElementType> ArraysAndInits(const Query& q) {
  if (q.operand_count() < 2 || q.operand_count() % 2 != 0) {
    q.Reject("needs n arrays and n initial values, but has {} operands", q.operand_count());
  }
  const int64_t n = q.operand_count() / 2;
  std::vector<ElementType> types;
  for (int64_t i = 0; i < n; ++i) {
    const Shape& array = q.Array(i);
    const Shape& init = q.Array(n + i);
    if (array.dimensions() != q.operand(0).dimensions()) {
      q.Reject("operands differ in dimensions: {} and {}", q.operand(0).ToString(false), array.ToString(false));
    }
    if (!init.IsScalar() || !SameTypeIgnoringPrecision(init.element_type(), array.element_type())) {
      q.Reject("initial value {} must be {}[], but is {}", i, ElementTypeName(array.element_type()),
               init.ToString(false));
    }
    types.push_back(array.element_type());
  }
  return types;
}

Shape OfTypes(const Shape& shape, const std::vector<ElementType>& types) {
  std::vector<Shape> results;
  for (ElementType type : types) {
    results.push_back(shape.WithoutLayout());
    results.back().set_element_type(type);
  }
  return OneOrTuple(std::move(results));
}

}  // namespace

Shape Reduce(const Query& q) {
  const std::vector<ElementType> types = ArraysAndInits(q);
  const Shape& array = q.operand(0);
  const auto& dimensions = q.As<attr::Dimensions>().dimensions;
  CheckDimensionNumbers(q, "dimensions", dimensions, array.rank());
  Shape result(types[0], {});
  for (int64_t d = 0; d < array.rank(); ++d) {
    if (Contains(dimensions, d)) continue;
    result.mutable_dimensions().push_back(array.dimension(d));
    if (array.is_dynamic_dimension(d)) result.set_dynamic_dimension(result.rank() - 1, true);
  }
  return OfTypes(result, ReducerTypes(q, 0, types));
}

Shape ReduceWindow(const Query& q) {
  const std::vector<ElementType> types = ArraysAndInits(q);
  const Shape result = WindowedShape(q, q.operand(0), q.As<attr::Windowed>().window);
  return OfTypes(result, ReducerTypes(q, 0, types));
}

Shape SelectAndScatter(const Query& q) {
  const Shape& operand = q.Array(0);
  const Shape& source = q.Array(1);
  const Shape& init = q.Array(2);
  q.RequireCalled(2);
  const ProgramShape select = q.Signature(0, 2);
  if (!select.result.SameAs(Shape::Scalar(ElementType::kPred))) {
    q.Reject("computation {} must return pred[], but returns {}", q.called[0]->name(), select.result.ToString(false));
  }
  for (const Shape& parameter : select.parameters) {
    if (!parameter.SameAs(Shape::Scalar(operand.element_type()))) {
      q.Reject("computation {} must take two {}[], but takes {}", q.called[0]->name(),
               ElementTypeName(operand.element_type()), parameter.ToString(false));
    }
  }
  const ElementType source_type[] = {source.element_type()};
  ReducerTypes(q, 1, source_type);
  if (!init.IsScalar() || !SameTypeIgnoringPrecision(init.element_type(), operand.element_type())) {
    q.Reject("the initial value must be {}[], but is {}", ElementTypeName(operand.element_type()),
             init.ToString(false));
  }
  const Shape windows = WindowedShape(q, operand, q.As<attr::Windowed>().window);
  if (windows.dimensions() != source.dimensions() ||
      !SameTypeIgnoringPrecision(source.element_type(), operand.element_type())) {
    q.Reject("the window makes {} of {}, but the source is {}", windows.ToString(false), operand.ToString(false),
             source.ToString(false));
  }
  return operand.WithoutLayout();
}

Shape Sort(const Query& q) {
  q.RequireOperands(1);
  const Shape& keys = q.Array(0);
  const int64_t dimension = q.As<attr::Sort>().dimension;
  if (dimension < 0 || dimension >= keys.rank()) {
    q.Reject("dimension {} is not one of {}", dimension, keys.ToString(false));
  }
  const ProgramShape comparator = q.Signature(0, 2 * q.operand_count());
  if (!comparator.result.SameAs(Shape::Scalar(ElementType::kPred))) {
    q.Reject("comparator {} must return pred[], but returns {}", q.called[0]->name(),
             comparator.result.ToString(false));
  }
  std::vector<Shape> results;
  for (int64_t i = 0; i < q.operand_count(); ++i) {
    const Shape& operand = q.Array(i);
    if (operand.dimensions() != keys.dimensions()) {
      q.Reject("operands differ in dimensions: {} and {}", keys.ToString(false), operand.ToString(false));
    }
    for (int64_t p : {2 * i, 2 * i + 1}) {
      const Shape& parameter = comparator.parameters[static_cast<size_t>(p)];
      if (!parameter.SameAs(Shape::Scalar(operand.element_type()))) {
        q.Reject("comparator {}: parameter {} must be {}[], but is {}", q.called[0]->name(), p,
                 ElementTypeName(operand.element_type()), parameter.ToString(false));
      }
    }
    results.push_back(operand.WithoutLayout());
  }
  return OneOrTuple(std::move(results));
}

Shape TopK(const Query& q) {
  const Shape& operand = q.Array(0);
  const int64_t k = q.As<attr::TopK>().k;
  if (operand.rank() < 1) q.Reject("the operand must have a dimension, but is {}", operand.ToString(false));
  if (k < 0 || k > operand.dimensions().back()) {
    q.Reject("k = {} exceeds the last dimension of {}", k, operand.ToString(false));
  }
  Shape values = operand.WithoutLayout();
  values.mutable_dimensions().back() = k;
  values.set_dynamic_dimension(values.rank() - 1, false);
  Shape indices = values;
  indices.set_element_type(ElementType::kS32);
  return Shape::Tuple({values, indices});
}

// to_apply takes a slice of each input and the carries, and returns a slice of each output and the carries; outputs
// stack the slices along the scan dimension.
Shape Scan(const Query& q) {
  const auto& scan = q.As<attr::Scan>();
  const int64_t inputs = q.operand_count() - scan.num_carries;
  if (scan.num_carries < 0 || inputs < 1) {
    q.Reject("needs at least one input besides its {} carries, but has {} operands", scan.num_carries,
             q.operand_count());
  }
  const ProgramShape step = q.Signature(0, q.operand_count());
  int64_t length = 0;
  bool varies = false;  // in length
  for (int64_t i = 0; i < inputs; ++i) {
    const Shape& input = q.Array(i);
    if (scan.scan_dimension < 0 || scan.scan_dimension >= input.rank()) {
      q.Reject("dimension {} is not one of {}", scan.scan_dimension, input.ToString(false));
    }
    if (i == 0) length = input.dimension(scan.scan_dimension);
    if (input.dimension(scan.scan_dimension) != length) {
      q.Reject("input {} has {} steps, but input 0 has {}", i, input.dimension(scan.scan_dimension), length);
    }
    varies |= input.is_dynamic_dimension(scan.scan_dimension);
    Dims slice = input.dimensions();
    slice.erase(slice.begin() + scan.scan_dimension);
    const Shape& parameter = step.parameters[static_cast<size_t>(i)];
    if (!parameter.IsArray() || parameter.element_type() != input.element_type() || parameter.dimensions() != slice) {
      q.Reject("computation {} takes {} as parameter {}, which does not fit a step of {}", q.called[0]->name(),
               parameter.ToString(false), i, input.ToString(false));
    }
  }
  if (!step.result.IsTuple() || static_cast<int64_t>(step.result.tuple_shapes().size()) < scan.num_carries) {
    q.Reject("computation {} must return a tuple of outputs and {} carries, but returns {}", q.called[0]->name(),
             scan.num_carries, step.result.ToString(false));
  }
  const auto outputs = static_cast<int64_t>(step.result.tuple_shapes().size()) - scan.num_carries;
  std::vector<Shape> results;
  for (int64_t i = 0; i < outputs; ++i) {
    Dims dimensions = step.result.tuple_shape(i).dimensions();
    if (scan.scan_dimension > static_cast<int64_t>(dimensions.size())) {
      q.Reject("output {} of computation {} is {}: it has no place for dimension {}", i, q.called[0]->name(),
               step.result.tuple_shape(i).ToString(false), scan.scan_dimension);
    }
    dimensions.insert(dimensions.begin() + scan.scan_dimension, length);
    Shape& stacked = results.emplace_back(step.result.tuple_shape(i).element_type(), std::move(dimensions));
    for (int64_t d = 0; d < stacked.rank(); ++d) {
      const int64_t of_slice = d < scan.scan_dimension ? d : d - 1;
      stacked.set_dynamic_dimension(
          d, d == scan.scan_dimension ? varies : step.result.tuple_shape(i).is_dynamic_dimension(of_slice));
    }
  }
  for (int64_t i = 0; i < scan.num_carries; ++i) {
    const Shape& carried = step.result.tuple_shape(outputs + i);
    if (!carried.SameAs(q.operand(inputs + i)) || !carried.SameAs(step.parameters[static_cast<size_t>(inputs + i)])) {
      q.Reject("carry {} starts as {}, but computation {} takes {} and returns {}", i,
               q.operand(inputs + i).ToString(false), q.called[0]->name(),
               step.parameters[static_cast<size_t>(inputs + i)].ToString(false), carried.ToString(false));
    }
    results.push_back(carried.WithoutLayout());
  }
  return Shape::Tuple(std::move(results));
}

}  // namespace hlorun::hlo::shape_rules
