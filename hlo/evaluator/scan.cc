// scan: steps through slices of the inputs along one dimension with carries; outputs are stacked.
#include <algorithm>

#include "hlo/error.h"
#include "hlo/evaluator/op_functions.h"
#include "hlo/evaluator/strided_copy.h"

namespace hlorun::hlo {
namespace {

// Slice `step` of an input, without the dimension; or the reverse, a slice put into an output.
StridedView SliceView(const Shape& whole, int64_t dimension, int64_t step) {
  StridedView view{0, whole.Strides()};
  view.offset = step * view.strides[static_cast<size_t>(dimension)];
  view.strides.erase(view.strides.begin() + dimension);
  return view;
}

Shape SliceShapeOf(const Shape& whole, int64_t dimension) {
  Dims dimensions = whole.dimensions();
  dimensions.erase(dimensions.begin() + dimension);
  return {whole.element_type(), dimensions};
}

// `length` slices, one behind the other.
Shape StackOf(const Shape& slice, int64_t dimension, int64_t length) {
  Dims dimensions = slice.dimensions();
  dimensions.insert(dimensions.begin() + dimension, length);
  return {slice.element_type(), dimensions};
}

// An output has the dimensions of the first step's slice.
void PutSlice(const OpCall& call, const Literal& slice, int64_t dimension, int64_t step, Literal& output) {
  const Shape expected = SliceShapeOf(output.shape(), dimension);
  if (!slice.shape().SameDimensions(expected)) {
    Invalid("{}: step {} gives {}, others gave {}", call.instruction.name(), step, slice.shape().ToString(false),
            expected.ToString(false));
  }
  CopyStrided(slice.data(), {0, slice.shape().Strides()}, output.mutable_data(),
              SliceView(output.shape(), dimension, step), slice.shape().dimensions(), BytesOf(slice.element_type()));
}

}  // namespace

// to_apply takes (slices..., carries...) and returns (output slices..., carries...). As many steps as the shortest
// input has: the others are not of varying size, and reach up to the bound.
Literal EvaluateScan(OpCall& call) {
  const auto& scan = call.As<attr::Scan>();
  const auto carries = static_cast<size_t>(scan.num_carries);
  const size_t inputs = call.operands.size() - carries;
  int64_t length = call.operand(0).shape().dimension(scan.scan_dimension);
  for (size_t i = 1; i < inputs; ++i)
    length = std::min(length, call.operands[i].shape().dimension(scan.scan_dimension));
  std::vector<Literal> state(call.operands.begin() + static_cast<std::ptrdiff_t>(inputs), call.operands.end());
  std::vector<Literal> results;
  const std::vector<Shape> shapes = call.shape.IsTuple() ? call.shape.tuple_shapes() : std::vector<Shape>{call.shape};
  const size_t outputs = shapes.size() - carries;
  for (int64_t t = 0; t < length; ++t) {
    const int64_t step = scan.is_reverse ? length - 1 - t : t;
    std::vector<Literal> arguments;
    for (size_t i = 0; i < inputs; ++i) {
      const Literal& input = call.operands[i];
      Literal slice(SliceShapeOf(input.shape(), scan.scan_dimension));
      CopyStrided(input.data(), SliceView(input.shape(), scan.scan_dimension, step), slice.mutable_data(),
                  {0, slice.shape().Strides()}, slice.shape().dimensions(), BytesOf(input.element_type()));
      arguments.push_back(std::move(slice));
    }
    for (Literal& carry : state) arguments.push_back(std::move(carry));
    Literal result = call.evaluation.Run(*call.instruction.called(), std::move(arguments));
    std::vector<Literal> leaves;
    if (result.shape().IsTuple()) {
      leaves = std::move(result.mutable_elements());
    } else {
      leaves.push_back(std::move(result));
    }
    for (size_t i = 0; i < outputs; ++i) {
      if (t == 0) results.emplace_back(StackOf(leaves[i].shape(), scan.scan_dimension, length));
      PutSlice(call, leaves[i], scan.scan_dimension, step, results[i]);
    }
    for (size_t i = 0; i < carries; ++i) state[i] = std::move(leaves[outputs + i]);
  }
  if (length == 0) {
    for (size_t i = 0; i < outputs; ++i)
      results.emplace_back(StackOf(SliceShapeOf(shapes[i], scan.scan_dimension), scan.scan_dimension, 0));
  }
  for (Literal& carry : state) results.push_back(std::move(carry));
  return call.shape.IsTuple() ? Literal::Tuple(std::move(results)) : std::move(results[0]);
}

}  // namespace hlorun::hlo
