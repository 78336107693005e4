// Ops whose result elements are copies of operand elements: each is a strided copy with its own strides.
#include <cstring>
#include <numeric>

#include "hlo/error.h"
#include "hlo/evaluator/op_functions.h"
#include "hlo/evaluator/strided_copy.h"

namespace hlorun::hlo {
namespace {

int ElementBytes(const Literal& literal) { return BytesOf(literal.element_type()); }

// Strides and offset of a box that starts at `starts`.
StridedView BoxAt(const Shape& shape, std::span<const int64_t> starts) {
  StridedView view{0, shape.Strides()};
  for (size_t d = 0; d < starts.size(); ++d) view.offset += starts[d] * view.strides[d];
  return view;
}

// dynamic-slice and dynamic-update-slice take one scalar a dimension, or (older text) one vector of all. Starts are
// clamped so that the box lies inside.
Dims ClampedStarts(std::span<const Literal> indices, const Shape& array, const Dims& sizes) {
  Dims starts;
  for (int64_t d = 0; d < array.rank(); ++d) {
    const bool vector = indices.size() == 1 && indices[0].shape().rank() == 1;
    const Literal& index = indices[vector ? 0 : static_cast<size_t>(d)];
    const int64_t start = index.GetInt(vector ? d : 0);
    const int64_t last = array.dimension(d) - sizes[static_cast<size_t>(d)];
    // A u64 beyond the signed range is large, not negative.
    const bool huge = index.element_type() == ElementType::kU64 && start < 0;
    starts.push_back(huge ? last : std::clamp<int64_t>(start, 0, last));
  }
  return starts;
}

}  // namespace

Literal EvaluateBroadcast(OpCall& call) {
  const Literal& operand = call.operand(0);
  Literal result(call.shape);
  const Dims operand_strides = operand.shape().Strides();
  StridedView from{0, Dims(static_cast<size_t>(call.shape.rank()), 0)};
  const std::vector<int64_t>& dimensions = call.instruction.dimensions();
  for (size_t i = 0; i < dimensions.size(); ++i) from.strides[static_cast<size_t>(dimensions[i])] = operand_strides[i];
  CopyStrided(operand.data(), from, result.mutable_data(), {0, call.shape.Strides()}, call.shape.dimensions(),
              ElementBytes(operand));
  return result;
}

Literal EvaluateTranspose(OpCall& call) {
  const Literal& operand = call.operand(0);
  Literal result(call.shape);
  const Dims operand_strides = operand.shape().Strides();
  StridedView from;
  for (const int64_t d : call.instruction.dimensions()) from.strides.push_back(operand_strides[static_cast<size_t>(d)]);
  CopyStrided(operand.data(), from, result.mutable_data(), {0, call.shape.Strides()}, call.shape.dimensions(),
              ElementBytes(operand));
  return result;
}

Literal EvaluateReshape(OpCall& call) {
  Literal result = std::move(call.operands[0]);
  HLORUN_CHECK(result.ElementCount() == call.shape.ElementCount());
  result.set_shape(call.shape);
  return result;
}

namespace {

// The array whose row-major order is the order in memory that `layout` describes; and back.
Literal InMemoryOrder(const Literal& value, const Layout& layout, bool back) {
  if (layout.IsRowMajor()) return value;
  const Shape& shape = value.shape();
  const auto rank = static_cast<size_t>(shape.rank());
  // major_to_minor[i] is the dimension that lies i-th in memory.
  const Dims major_to_minor(layout.minor_to_major.rbegin(), layout.minor_to_major.rend());
  Dims physical(rank);
  for (size_t i = 0; i < rank; ++i) physical[i] = shape.dimension(major_to_minor[i]);
  const Dims physical_strides = Shape(shape.element_type(), physical).Strides();
  StridedView memory{0, Dims(rank)};  // indexed by logical dimension
  for (size_t i = 0; i < rank; ++i) memory.strides[static_cast<size_t>(major_to_minor[i])] = physical_strides[i];
  const StridedView logical{0, shape.Strides()};
  Literal result(back ? shape : Shape(shape.element_type(), physical));
  CopyStrided(value.data(), back ? memory : logical, result.mutable_data(), back ? logical : memory, shape.dimensions(),
              BytesOf(shape.element_type()));
  return result;
}

}  // namespace

// Reinterprets memory: where layouts are not row-major, elements move in our row-major literals.
Literal EvaluateBitcast(OpCall& call) {
  Literal value = std::move(call.operands[0]);
  const std::optional<Layout>& from = call.instruction.operand(0)->shape().layout();
  const std::optional<Layout>& to = call.instruction.shape().layout();
  if (from.has_value()) value = InMemoryOrder(value, *from, false);
  HLORUN_CHECK(value.ByteSize() == call.shape.ByteSize());
  value.set_shape(call.shape);
  if (to.has_value()) value = InMemoryOrder(value, *to, true);
  return value;
}

Literal EvaluateReverse(OpCall& call) {
  const Literal& operand = call.operand(0);
  Literal result(call.shape);
  StridedView from{0, operand.shape().Strides()};
  for (const int64_t d : call.instruction.dimensions()) {
    int64_t& stride = from.strides[static_cast<size_t>(d)];
    from.offset += (operand.shape().dimension(d) - 1) * stride;
    stride = -stride;
  }
  CopyStrided(operand.data(), from, result.mutable_data(), {0, call.shape.Strides()}, call.shape.dimensions(),
              ElementBytes(operand));
  return result;
}

Literal EvaluateSlice(OpCall& call) {
  const Literal& operand = call.operand(0);
  const auto& slice = call.As<attr::Slice>();
  Literal result(call.shape);
  StridedView from = BoxAt(operand.shape(), slice.starts);
  for (size_t d = 0; d < slice.strides.size(); ++d) from.strides[d] *= slice.strides[d];
  CopyStrided(operand.data(), from, result.mutable_data(), {0, call.shape.Strides()}, call.shape.dimensions(),
              ElementBytes(operand));
  return result;
}

// Element i of a dimension lands at low + i * (interior + 1); negative padding drops what falls outside.
Literal EvaluatePad(OpCall& call) {
  const Literal& operand = call.operand(0);
  const auto& padding = call.As<attr::Pad>().padding;
  Literal result(call.shape);
  const Dims strides = call.shape.Strides();
  const Dims still(strides.size(), 0);
  CopyStrided(call.operand(1).data(), {0, still}, result.mutable_data(), {0, strides}, call.shape.dimensions(),
              ElementBytes(operand));
  StridedView from{0, operand.shape().Strides()};
  StridedView to{0, strides};
  Dims counts;
  for (size_t d = 0; d < padding.size(); ++d) {
    const int64_t step = padding[d].interior + 1;
    const int64_t size = operand.shape().dimensions()[d];
    const int64_t first = padding[d].low >= 0 ? 0 : (-padding[d].low + step - 1) / step;
    // The last element whose place is inside: low + i * step <= result size - 1.
    const int64_t room = call.shape.dimensions()[d] - 1 - padding[d].low;
    const int64_t end = room < 0 ? 0 : std::min(size, room / step + 1);
    counts.push_back(std::max<int64_t>(0, end - first));
    from.offset += first * from.strides[d];
    to.offset += (padding[d].low + first * step) * to.strides[d];
    to.strides[d] *= step;
  }
  CopyStrided(operand.data(), from, result.mutable_data(), to, counts, ElementBytes(operand));
  return result;
}

Literal EvaluateConcatenate(OpCall& call) {
  Literal result(call.shape);
  const auto dimension = static_cast<size_t>(call.instruction.dimensions()[0]);
  Dims starts(static_cast<size_t>(call.shape.rank()), 0);
  for (const Literal& operand : call.operands) {
    CopyStrided(operand.data(), {0, operand.shape().Strides()}, result.mutable_data(), BoxAt(call.shape, starts),
                operand.shape().dimensions(), ElementBytes(operand));
    starts[dimension] += operand.shape().dimensions()[dimension];
  }
  return result;
}

Literal EvaluateDynamicSlice(OpCall& call) {
  const Literal& operand = call.operand(0);
  Literal result(call.shape);
  const Dims starts = ClampedStarts(call.operands.subspan(1), operand.shape(), call.shape.dimensions());
  CopyStrided(operand.data(), BoxAt(operand.shape(), starts), result.mutable_data(), {0, call.shape.Strides()},
              call.shape.dimensions(), ElementBytes(operand));
  return result;
}

Literal EvaluateDynamicUpdateSlice(OpCall& call) {
  Literal result = std::move(call.operands[0]);
  const Literal& update = call.operand(1);
  const Dims starts = ClampedStarts(call.operands.subspan(2), result.shape(), update.shape().dimensions());
  CopyStrided(update.data(), {0, update.shape().Strides()}, result.mutable_data(), BoxAt(result.shape(), starts),
              update.shape().dimensions(), ElementBytes(update));
  return result;
}

Literal EvaluateIota(OpCall& call) {
  const int64_t dimension = call.instruction.dimensions()[0];
  const int64_t size = call.shape.dimension(dimension);
  Literal line(Shape(call.shape.element_type(), {size}));
  for (int64_t i = 0; i < size; ++i) line.SetInt(i, i);
  Literal result(call.shape);
  StridedView from{0, Dims(static_cast<size_t>(call.shape.rank()), 0)};
  from.strides[static_cast<size_t>(dimension)] = 1;
  CopyStrided(line.data(), from, result.mutable_data(), {0, call.shape.Strides()}, call.shape.dimensions(),
              ElementBytes(line));
  return result;
}

Literal EvaluateConstant(OpCall& call) {
  const auto& constant = call.As<attr::Constant>();
  if (constant.elided) {
    Invalid(
        "constant {}: its value was left out of the text ({{...}}); print the module with large constants, or fill "
        "it while reading",
        call.instruction.name());
  }
  return constant.value;
}

}  // namespace hlorun::hlo
