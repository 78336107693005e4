// reduce-window and select-and-scatter.
#include <cstring>

#include "hlo/error.h"
#include "hlo/evaluator/lanes/lane_op.h"
#include "hlo/evaluator/op_functions.h"
#include "hlo/evaluator/reducer.h"
#include "hlo/evaluator/strided_copy.h"
#include "hlo/evaluator/window.h"

namespace hlorun::hlo {
namespace {

Dims WindowSizes(const Window& window) {
  Dims sizes;
  for (const WindowDimension& dimension : window) sizes.push_back(dimension.size);
  return sizes;
}

// `scalar` everywhere.
Literal Filled(const Literal& scalar, const Dims& dimensions) {
  Literal result(Shape(scalar.element_type(), dimensions));
  CopyStrided(scalar.data(), {0, Dims(dimensions.size(), 0)}, result.mutable_data(), {0, result.shape().Strides()},
              dimensions, BytesOf(scalar.element_type()));
  return result;
}

// Output positions of one dimension that see a base element through window position `w`: first, count, and the distance
// between neighbours, with the base positions likewise.
struct Line {
  int64_t first = 0, step = 1, count = 0;
  int64_t base_first = 0, base_step = 1;
};

Line LineOf(const WindowDimension& dimension, int64_t w, int64_t outputs, int64_t base_size) {
  Line line;
  int64_t second = -1;
  for (int64_t o = 0; o < outputs; ++o) {
    const int64_t base = BasePosition(dimension, o, w, base_size);
    if (base < 0) continue;
    if (line.count == 0) {
      line.first = o;
      line.base_first = base;
    } else if (line.count == 1) {
      second = o;
      line.step = second - line.first;
      line.base_step = base - line.base_first;
    }
    ++line.count;
  }
  return line;
}

// One window position over all outputs: per dimension, the outputs that see an element form an arithmetic sequence.
void AccumulatePosition(Reducer& reducer, const std::vector<Line>& lines, const std::vector<Literal>& values,
                        std::vector<Literal>& accumulators) {
  Dims counts;
  StridedView base{0, values[0].shape().Strides()};
  StridedView output{0, accumulators[0].shape().Strides()};
  for (size_t d = 0; d < lines.size(); ++d) {
    if (lines[d].count == 0) return;
    counts.push_back(lines[d].count);
    base.offset += lines[d].base_first * base.strides[d];
    base.strides[d] *= lines[d].base_step;
    output.offset += lines[d].first * output.strides[d];
    output.strides[d] *= lines[d].step;
  }
  // Gathered, accumulated on contiguous lanes, and put back.
  std::vector<Literal> lanes;
  std::vector<Literal> current;
  std::vector<void*> targets;
  std::vector<const void*> sources;
  const int64_t count = CheckedProduct(counts);
  for (size_t i = 0; i < values.size(); ++i) {
    const Shape shape(values[i].element_type(), counts);
    const StridedView packed{0, shape.Strides()};
    lanes.emplace_back(shape);
    CopyStrided(values[i].data(), base, lanes.back().mutable_data(), packed, counts, BytesOf(shape.element_type()));
    current.emplace_back(Shape(accumulators[i].element_type(), counts));
    CopyStrided(accumulators[i].data(), output, current.back().mutable_data(), packed, counts,
                BytesOf(accumulators[i].element_type()));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    targets.push_back(current[i].mutable_data());
    sources.push_back(lanes[i].data());
  }
  reducer.Run(targets, sources, count);
  for (size_t i = 0; i < values.size(); ++i) {
    CopyStrided(current[i].data(), {0, current[i].shape().Strides()}, accumulators[i].mutable_data(), output, counts,
                BytesOf(current[i].element_type()));
  }
}

}  // namespace

Literal EvaluateReduceWindow(OpCall& call) {
  const Window& window = call.As<attr::Windowed>().window;
  Reducer reducer(call.evaluation, *call.instruction.called());
  const size_t count = call.operands.size() / 2;
  const Shape& result_shape = call.shape.IsTuple() ? call.shape.tuple_shape(0) : call.shape;
  std::vector<Literal> values;
  std::vector<Literal> accumulators;
  for (size_t i = 0; i < count; ++i) {
    const auto leaf = static_cast<int64_t>(i);
    values.push_back(reducer.AsValue(leaf, call.operands[i]));
    accumulators.push_back(Filled(reducer.AsAccumulator(leaf, call.operands[count + i]), result_shape.dimensions()));
  }
  const Dims sizes = WindowSizes(window);
  call.evaluation.Charge(result_shape.ElementCount() * CheckedProduct(sizes));
  Dims position(sizes.size(), 0);
  if (result_shape.ElementCount() > 0 && CheckedProduct(sizes) > 0) {
    do {
      std::vector<Line> lines;
      for (size_t d = 0; d < sizes.size(); ++d) {
        lines.push_back(
            LineOf(window[d], position[d], result_shape.dimensions()[d], values[0].shape().dimensions()[d]));
      }
      AccumulatePosition(reducer, lines, values, accumulators);
    } while (NextIndex(position, sizes));
  }
  for (size_t i = 0; i < count; ++i) {
    accumulators[i] = ConvertedTo(accumulators[i], FlattenShape(call.shape)[i].element_type());
  }
  return call.shape.IsTuple() ? Literal::Tuple(std::move(accumulators)) : std::move(accumulators[0]);
}

namespace {

// The operand element that `select` chooses in the window of one source element: the first one, replaced by a later one
// whenever select(chosen, later) is false. -1 when the window sees padding only.
int64_t ChosenElement(ScalarFunction& select, const Literal& operand, const Window& window, const Dims& sizes,
                      const Dims& source_index) {
  const Dims strides = operand.shape().Strides();
  const int64_t bytes = BytesOf(operand.element_type());
  int64_t chosen = -1;
  Dims position(sizes.size(), 0);
  do {
    int64_t offset = 0;
    for (size_t d = 0; d < sizes.size() && offset >= 0; ++d) {
      const int64_t base = BasePosition(window[d], source_index[d], position[d], operand.shape().dimensions()[d]);
      offset = base < 0 ? -1 : offset + base * strides[d];
    }
    if (offset < 0) continue;
    bool keeps = false;
    if (chosen >= 0) {
      const void* inputs[] = {operand.data() + chosen * bytes, operand.data() + offset * bytes};
      void* output = &keeps;
      select.Run(inputs, {&output, 1}, 1);
    }
    if (!keeps) chosen = offset;
  } while (NextIndex(position, sizes));
  return chosen;
}

}  // namespace

Literal EvaluateSelectAndScatter(OpCall& call) {
  const Window& window = call.As<attr::Windowed>().window;
  const Literal& operand = call.operand(0);
  ScalarFunction select(call.evaluation, *call.instruction.called(0));
  Reducer scatter(call.evaluation, *call.instruction.called(1), Reducer::Rounding::kAtEachStep);
  const Literal source = scatter.AsValue(0, call.operand(1));
  Literal result = Filled(scatter.AsAccumulator(0, call.operand(2)), call.shape.dimensions());
  const Dims sizes = WindowSizes(window);
  call.evaluation.Charge(source.ElementCount() * CheckedProduct(sizes));
  Dims index(sizes.size(), 0);
  std::byte* out = result.mutable_data();
  for (int64_t i = 0; i < source.ElementCount(); ++i) {
    const int64_t chosen = ChosenElement(select, operand, window, sizes, index);
    if (chosen >= 0) {
      void* target = out + chosen * BytesOf(result.element_type());
      const void* value = source.data() + i * BytesOf(source.element_type());
      scatter.Run({&target, 1}, {&value, 1}, 1);
    }
    NextIndex(index, source.shape().dimensions());
  }
  return ConvertedTo(result, call.shape.element_type());
}

}  // namespace hlorun::hlo
