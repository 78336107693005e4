// reduce: operands are turned so that the reduced dimensions are outermost; then whole rows accumulate onto the result.
#include "hlo/error.h"
#include "hlo/evaluator/lanes/lane_op.h"
#include "hlo/evaluator/op_functions.h"
#include "hlo/evaluator/reducer.h"
#include "hlo/evaluator/strided_copy.h"
#include "hlo/number_types.h"

namespace hlorun::hlo {
namespace {

// [reduced dimensions..., kept dimensions...], row-major.
Literal ReducedFirst(const Literal& operand, const std::vector<int64_t>& reduced, const Dims& kept) {
  const Dims strides = operand.shape().Strides();
  Dims dimensions;
  StridedView from;
  for (const std::vector<int64_t>* order : {&reduced, &kept}) {
    for (const int64_t d : *order) {
      dimensions.push_back(operand.shape().dimension(d));
      from.strides.push_back(strides[static_cast<size_t>(d)]);
    }
  }
  if (std::is_sorted(from.strides.rbegin(), from.strides.rend())) return operand;
  Literal result(Shape(operand.element_type(), dimensions));
  CopyStrided(operand.data(), from, result.mutable_data(), {0, result.shape().Strides()}, dimensions,
              BytesOf(operand.element_type()));
  return result;
}

// `count` copies of a scalar.
Literal Filled(const Literal& scalar, const Dims& dimensions) {
  Literal result(Shape(scalar.element_type(), dimensions));
  CopyStrided(scalar.data(), {0, Dims(dimensions.size(), 0)}, result.mutable_data(), {0, result.shape().Strides()},
              dimensions, BytesOf(scalar.element_type()));
  return result;
}

// Folds the second half of the rows onto the first until one is left: few long calls instead of many short ones.
void FoldHalves(Reducer& reducer, std::byte* values, int64_t rows, int64_t row_elements) {
  const int64_t row_bytes = row_elements * BytesOf(reducer.accumulator_type(0));
  while (rows > 1) {
    const int64_t kept = (rows + 1) / 2;
    void* accumulator = values;
    const void* folded = values + kept * row_bytes;
    reducer.Run({&accumulator, 1}, {&folded, 1}, (rows - kept) * row_elements);
    rows = kept;
  }
}

}  // namespace

Literal EvaluateReduce(OpCall& call) {
  const std::vector<int64_t>& reduced = call.instruction.dimensions();
  const size_t count = call.operands.size() / 2;
  Reducer reducer(call.evaluation, *call.instruction.called());
  const Shape& input = call.operand(0).shape();
  Dims kept;
  Dims kept_sizes;
  for (int64_t d = 0; d < input.rank(); ++d) {
    if (std::find(reduced.begin(), reduced.end(), d) != reduced.end()) continue;
    kept.push_back(d);
    kept_sizes.push_back(input.dimension(d));
  }
  const int64_t row = CheckedProduct(kept_sizes);
  int64_t rows = 1;
  for (const int64_t d : reduced) rows *= input.dimension(d);
  call.evaluation.Charge(input.ElementCount());

  std::vector<Literal> values;
  std::vector<Literal> accumulators;
  for (size_t i = 0; i < count; ++i) {
    const auto leaf = static_cast<int64_t>(i);
    values.push_back(reducer.AsValue(leaf, ReducedFirst(call.operands[i], reduced, kept)));
    accumulators.push_back(Filled(reducer.AsAccumulator(leaf, call.operands[count + i]), kept_sizes));
  }
  if (reducer.associates() && rows > 1 && row < 512) {
    FoldHalves(reducer, values[0].mutable_data(), rows, row);
    rows = 1;
  }
  std::vector<void*> targets;
  std::vector<const void*> sources(count);
  for (Literal& accumulator : accumulators) targets.push_back(accumulator.mutable_data());
  for (int64_t r = 0; r < rows && row > 0; ++r) {
    for (size_t i = 0; i < count; ++i) {
      sources[i] = values[i].data() + r * row * BytesOf(values[i].element_type());
    }
    reducer.Run(targets, sources, row);
  }
  for (size_t i = 0; i < count; ++i) {
    accumulators[i] = ConvertedTo(accumulators[i], FlattenShape(call.shape)[i].element_type());
  }
  return call.shape.IsTuple() ? Literal::Tuple(std::move(accumulators)) : std::move(accumulators[0]);
}

}  // namespace hlorun::hlo
