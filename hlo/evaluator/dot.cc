// dot and ragged-dot: both operands are laid out as stacks of matrices, multiplied, and the result is in HLO's order
// (batch, free dimensions of the left side, free dimensions of the right side).
#include "hlo/error.h"
#include "hlo/evaluator/lanes/lane_op.h"
#include "hlo/evaluator/op_functions.h"
#include "hlo/evaluator/product.h"
#include "hlo/evaluator/strided_copy.h"
#include "hlo/shape_inference.h"

namespace hlorun::hlo {
namespace {

using Axes = std::vector<int64_t>;

Axes FreeAxes(const Literal& operand, const Axes& batch, const Axes& contracting) {
  Axes free;
  for (int64_t d = 0; d < operand.shape().rank(); ++d) {
    if (!Contains(batch, d) && !Contains(contracting, d)) free.push_back(d);
  }
  return free;
}

int64_t SizeOf(const Literal& operand, const Axes& axes) {
  int64_t size = 1;
  for (const int64_t d : axes) size *= operand.shape().dimension(d);
  return size;
}

// The operand's elements with its dimensions in the order given.
Literal Ordered(const Literal& operand, std::initializer_list<const Axes*> order) {
  const Dims strides = operand.shape().Strides();
  Dims dimensions;
  StridedView from;
  for (const Axes* axes : order) {
    for (const int64_t d : *axes) {
      dimensions.push_back(operand.shape().dimension(d));
      from.strides.push_back(strides[static_cast<size_t>(d)]);
    }
  }
  Literal result(Shape(operand.element_type(), dimensions));
  CopyStrided(operand.data(), from, result.mutable_data(), {0, result.shape().Strides()}, dimensions,
              BytesOf(operand.element_type()));
  return result;
}

// Algorithms that name bf16 operands round them there first.
Literal DotOperand(const Literal& operand, const attr::Dot& dot, ElementType type) {
  const bool rounds = dot.algorithm == "dot_bf16_bf16_f32" || dot.algorithm == "dot_bf16_bf16_bf16";
  if (rounds && operand.element_type() == ElementType::kF32) {
    return ConvertedTo(ConvertedTo(operand, ElementType::kBF16), type);
  }
  return ConvertedTo(operand, type);
}

Literal Dot(const Literal& lhs_operand, const Literal& rhs_operand, const attr::Dot& dot, const Shape& shape) {
  const ElementType type = ProductType(shape.element_type());
  const Literal lhs = DotOperand(lhs_operand, dot, type);
  const Literal rhs = DotOperand(rhs_operand, dot, type);
  const Axes lhs_free = FreeAxes(lhs, dot.lhs_batch, dot.lhs_contracting);
  const Axes rhs_free = FreeAxes(rhs, dot.rhs_batch, dot.rhs_contracting);
  const int64_t batch = SizeOf(lhs, dot.lhs_batch);
  const int64_t m = SizeOf(lhs, lhs_free);
  const int64_t n = SizeOf(rhs, rhs_free);
  const int64_t k = SizeOf(lhs, dot.lhs_contracting);
  // The inner loop runs along the second matrix's columns: the side with more of them goes there.
  const bool swapped = m > n;
  Literal a = swapped ? Ordered(rhs, {&dot.rhs_batch, &rhs_free, &dot.rhs_contracting})
                      : Ordered(lhs, {&dot.lhs_batch, &lhs_free, &dot.lhs_contracting});
  Literal b = swapped ? Ordered(lhs, {&dot.lhs_batch, &dot.lhs_contracting, &lhs_free})
                      : Ordered(rhs, {&dot.rhs_batch, &dot.rhs_contracting, &rhs_free});
  const int64_t rows = swapped ? n : m;
  const int64_t columns = swapped ? m : n;
  Literal product(Shape(type, swapped ? Dims{batch, n, m} : Dims{batch, m, n}));
  const int64_t bytes = BytesOf(type);
  std::byte* out = product.mutable_data();
  for (int64_t i = 0; i < batch; ++i) {
    const std::byte* left = a.data() + i * rows * k * bytes;
    const std::byte* right = b.data() + i * k * columns * bytes;
    std::byte* target = out + i * rows * columns * bytes;
    if (dot.lhs_contracting.empty()) {
      OuterProduct(type, left, right, target, rows, columns);
    } else {
      MatrixProduct(type, left, right, target, rows, columns, k);
    }
  }
  if (swapped) {
    const Axes first{0};
    const Axes last{2};
    const Axes middle{1};
    product = Ordered(product, {&first, &last, &middle});
  }
  product.set_shape(Shape(type, shape.dimensions()));
  return ConvertedTo(product, shape.element_type());
}

}  // namespace

Literal EvaluateDot(OpCall& call) {
  const auto& dot = call.As<attr::Dot>();
  call.evaluation.Charge(call.shape.ElementCount() * SizeOf(call.operand(0), dot.lhs_contracting));
  return Dot(call.operand(0), call.operand(1), dot, call.shape);
}

namespace {

// The operand times its scale, each scale standing for a block of elements, in the type that holds both.
Literal Dequantized(const Literal& operand, const Literal& scale) {
  if (scale.shape().rank() == 0) return operand;
  const ElementType type = DequantizedType(operand.element_type(), scale.element_type());
  const Literal values = ConvertedTo(operand, type);
  const Literal scales = ConvertedTo(scale, type);
  Literal result(Shape(type, operand.shape().dimensions()));
  const Dims& dimensions = operand.shape().dimensions();
  const Dims strides = scale.shape().Strides();
  Dims index(dimensions.size(), 0);
  for (int64_t i = 0; i < result.ElementCount(); ++i) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d)
      at += index[d] * scale.shape().dimensions()[d] / dimensions[d] * strides[d];
    result.SetDouble(i, values.GetDouble(i) * scales.GetDouble(at));
    NextIndex(index, dimensions);
  }
  return result;
}

}  // namespace

Literal EvaluateScaledDot(OpCall& call) {
  const auto& dot = call.As<attr::Dot>();
  call.evaluation.Charge(call.shape.ElementCount() * SizeOf(call.operand(0), dot.lhs_contracting));
  return Dot(Dequantized(call.operand(0), call.operand(2)), Dequantized(call.operand(1), call.operand(3)), dot,
             call.shape);
}

namespace {

// One contiguous piece of a literal along a dimension.
Literal Piece(const Literal& literal, int64_t dimension, int64_t start, int64_t size) {
  Dims dimensions = literal.shape().dimensions();
  dimensions[static_cast<size_t>(dimension)] = size;
  Literal result(Shape(literal.element_type(), dimensions));
  const Dims strides = literal.shape().Strides();
  CopyStrided(literal.data(), {start * strides[static_cast<size_t>(dimension)], strides}, result.mutable_data(),
              {0, result.shape().Strides()}, dimensions, BytesOf(literal.element_type()));
  return result;
}

void Place(const Literal& piece, Literal& into, int64_t dimension, int64_t start) {
  const Dims strides = into.shape().Strides();
  CopyStrided(piece.data(), {0, piece.shape().Strides()}, into.mutable_data(),
              {start * strides[static_cast<size_t>(dimension)], strides}, piece.shape().dimensions(),
              BytesOf(into.element_type()));
}

Axes Shifted(Axes axes, int64_t removed) {
  for (int64_t& d : axes) d -= d > removed ? 1 : 0;
  return axes;
}

// Position of a left dimension in the result of a plain dot.
int64_t ResultDimension(const Literal& lhs, const attr::Dot& dot, int64_t d) {
  const auto in_batch = std::find(dot.lhs_batch.begin(), dot.lhs_batch.end(), d);
  if (in_batch != dot.lhs_batch.end()) return in_batch - dot.lhs_batch.begin();
  const Axes free = FreeAxes(lhs, dot.lhs_batch, dot.lhs_contracting);
  return static_cast<int64_t>(dot.lhs_batch.size()) + (std::find(free.begin(), free.end(), d) - free.begin());
}

}  // namespace

// Rows of the ragged dimension fall into consecutive groups of the sizes given. Ragged and free: each group of rows
// meets its own right matrix. Ragged and contracted: one product a group, stacked in front. Ragged batch: a plain dot
// of the rows in groups. What lies behind the last group gives zeros.
Literal EvaluateRaggedDot(OpCall& call) {
  attr::Dot dot = call.As<attr::Dot>();
  const Literal& lhs = call.operand(0);
  const Literal& rhs = call.operand(1);
  const Literal& sizes = call.operand(2);
  if (sizes.shape().rank() != 1 || dot.lhs_ragged.size() != 1) {
    Fail(ErrorCode::kUnimplemented, "{}: ragged-dot with group sizes per batch is not evaluated",
         call.instruction.name());
  }
  const int64_t ragged = dot.lhs_ragged[0];
  const auto contracted = std::find(dot.lhs_contracting.begin(), dot.lhs_contracting.end(), ragged);
  const auto batch = std::find(dot.lhs_batch.begin(), dot.lhs_batch.end(), ragged);
  call.evaluation.Charge(call.shape.ElementCount() * SizeOf(lhs, dot.lhs_contracting));
  Literal result(call.shape);
  int64_t start = 0;
  for (int64_t g = 0; g < sizes.ElementCount(); ++g) {
    const int64_t size = std::clamp<int64_t>(sizes.GetInt(g), 0, lhs.shape().dimension(ragged) - start);
    const Literal rows = Piece(lhs, ragged, start, size);
    Shape shape = call.shape;
    if (contracted != dot.lhs_contracting.end()) {
      const int64_t rhs_ragged = dot.rhs_contracting[static_cast<size_t>(contracted - dot.lhs_contracting.begin())];
      shape.mutable_dimensions().erase(shape.mutable_dimensions().begin());
      Literal product = Dot(rows, Piece(rhs, rhs_ragged, start, size), dot, shape);
      shape.mutable_dimensions().insert(shape.mutable_dimensions().begin(), 1);
      product.set_shape(shape);
      Place(product, result, 0, g);
    } else {
      const int64_t place = ResultDimension(lhs, dot, ragged);
      shape.mutable_dimensions()[static_cast<size_t>(place)] = size;
      attr::Dot group_dot = dot;
      Literal matrix;
      if (batch != dot.lhs_batch.end()) {
        matrix = Piece(rhs, dot.rhs_batch[static_cast<size_t>(batch - dot.lhs_batch.begin())], start, size);
      } else {
        const int64_t group_dimension = dot.rhs_group.at(0);
        matrix = Piece(rhs, group_dimension, g, 1);
        Dims dimensions = matrix.shape().dimensions();
        dimensions.erase(dimensions.begin() + group_dimension);
        matrix.set_shape(Shape(matrix.element_type(), dimensions));
        group_dot.rhs_batch = Shifted(dot.rhs_batch, group_dimension);
        group_dot.rhs_contracting = Shifted(dot.rhs_contracting, group_dimension);
      }
      Place(Dot(rows, matrix, group_dot, shape), result, place, start);
    }
    start += size;
  }
  return result;
}

}  // namespace hlorun::hlo
