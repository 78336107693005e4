// Shapes of batch norms, transforms, factorisations and random numbers.
#include "hlo/shape_rules/rules.h"

namespace hlorun::hlo::shape_rules {
namespace {

// The 1-D shape of the feature dimension of operand 0, which operands in [first, last] must have.
Shape FeatureShape(const Query& q, int64_t first, int64_t last) {
  const Shape& operand = q.Array(0);
  const int64_t feature = q.As<attr::BatchNorm>().feature_index;
  if (!IsFloating(operand.element_type())) q.Reject("the operand must be floating, but is {}", operand.ToString(false));
  if (feature < 0 || feature >= operand.rank()) {
    q.Reject("feature_index {} is not a dimension of {}", feature, operand.ToString(false));
  }
  Shape shape(operand.element_type(), {operand.dimension(feature)});
  shape.set_dynamic_dimension(0, operand.is_dynamic_dimension(feature));
  for (int64_t i = first; i <= last; ++i) {
    const Shape& other = q.Array(i);
    if (other.dimensions() != shape.dimensions() ||
        !SameTypeIgnoringPrecision(other.element_type(), shape.element_type())) {
      q.Reject("operand {} must be {} as the features of {}, but is {}", i, shape.ToString(false),
               operand.ToString(false), other.ToString(false));
    }
  }
  return shape;
}

void CheckSquareMatrices(const Query& q, const Shape& a) {
  if (!IsFloating(a.element_type()) && !IsComplex(a.element_type())) {
    q.Reject("the matrices must be floating or complex, but are {}", a.ToString(false));
  }
  if (a.rank() < 2 || a.dimension(a.rank() - 1) != a.dimension(a.rank() - 2)) {
    q.Reject("the last two dimensions must be a square matrix, but the operand is {}", a.ToString(false));
  }
}

}  // namespace

Shape BatchNormTraining(const Query& q) {
  const Shape features = FeatureShape(q, 1, 2);
  return Shape::Tuple({q.operand(0).WithoutLayout(), features, features});
}

Shape BatchNormInference(const Query& q) {
  FeatureShape(q, 1, 4);
  return q.operand(0).WithoutLayout();
}

Shape BatchNormGrad(const Query& q) {
  const Shape features = FeatureShape(q, 1, 3);
  if (!q.Array(4).SameDimensions(q.operand(0))) {
    q.Reject("the output's gradient must have the operand's shape {}, but is {}", q.operand(0).ToString(false),
             q.operand(4).ToString(false));
  }
  return Shape::Tuple({q.operand(0).WithoutLayout(), features, features});
}

Shape Fft(const Query& q) {
  const Shape& operand = q.Array(0);
  const auto& [type, length] = q.As<attr::Fft>();
  const auto n = static_cast<int64_t>(length.size());
  if (n < 1 || n > 3 || n > operand.rank()) {
    q.Reject("fft_length must have 1 to 3 dimensions of {}, but has {}", operand.ToString(false), n);
  }
  const bool real_input = type == FftType::kRfft;
  const ElementType element = operand.element_type();
  if (real_input ? element != ElementType::kF32 && element != ElementType::kF64 : !IsComplex(element)) {
    q.Reject("the operand must be {}, but is {}", real_input ? "f32 or f64" : "complex", operand.ToString(false));
  }
  Shape result = operand.WithoutLayout();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t d = operand.rank() - n + i;
    const int64_t points = length[static_cast<size_t>(i)];
    const bool halved = i == n - 1;
    const int64_t expected = type == FftType::kIrfft && halved ? points / 2 + 1 : points;
    if (points < 0 || operand.dimension(d) != (points == 0 ? 0 : expected)) {
      q.Reject("fft_length {} of dimension {} needs an operand of size {} there, but has {}", points, d, expected,
               operand.dimension(d));
    }
    if (type == FftType::kRfft && halved)
      result.mutable_dimensions()[static_cast<size_t>(d)] = points == 0 ? 0 : points / 2 + 1;
    if (type == FftType::kIrfft && halved) result.mutable_dimensions()[static_cast<size_t>(d)] = points;
  }
  if (type == FftType::kIrfft) result.set_element_type(RealOf(element));
  if (type == FftType::kRfft) {
    result.set_element_type(element == ElementType::kF32 ? ElementType::kC64 : ElementType::kC128);
  }
  return result;
}

Shape Cholesky(const Query& q) {
  CheckSquareMatrices(q, q.Array(0));
  return q.operand(0).WithoutLayout();
}

Shape TriangularSolve(const Query& q) {
  const Shape& a = q.Array(0);
  const Shape& b = q.Array(1);
  CheckSquareMatrices(q, a);
  if (a.element_type() != b.element_type() || a.rank() != b.rank()) {
    q.Reject("the matrices differ in element type or rank: {} and {}", a.ToString(false), b.ToString(false));
  }
  for (int64_t d = 0; d < a.rank() - 2; ++d) {
    if (a.dimension(d) != b.dimension(d)) {
      q.Reject("batch dimensions differ: {} and {}", a.ToString(false), b.ToString(false));
    }
  }
  const int64_t shared = b.dimension(b.rank() - (q.As<attr::TriangularSolve>().left_side ? 2 : 1));
  if (a.dimension(a.rank() - 1) != shared) {
    q.Reject("the triangular matrices {} do not fit the right-hand sides {}", a.ToString(false), b.ToString(false));
  }
  return b.WithoutLayout();
}

Shape Rng(const Query& q) {
  const Shape result = q.Declared();
  if (!result.IsArray()) q.Reject("the result must be an array, but is {}", result.ToString(false));
  for (int64_t i = 0; i < q.operand_count(); ++i) {
    if (!q.Array(i).IsScalar()) {
      q.Reject("distribution parameter {} must be a scalar, but is {}", i, q.operand(i).ToString(false));
    }
  }
  return result;
}

// rng-bit-generator returns (new state, bits), or, in the older form without the state, the bits alone.
Shape RngBitGenerator(const Query& q) {
  const Shape& state = q.Array(0);
  if (!IsInteger(state.element_type())) q.Reject("the state must be integers, but is {}", state.ToString(false));
  const Shape result = q.Declared();
  const bool fits = result.IsTuple()
                        ? result.tuple_shapes().size() == 2 && result.tuple_shape(0).SameAs(state.WithoutLayout()) &&
                              result.tuple_shape(1).IsArray()
                        : result.IsArray();
  if (!fits) {
    q.Reject("the result must be ({}, bits), but is {}", state.ToString(false), result.ToString(false));
  }
  return result;
}

Shape RngGetAndUpdateState(const Query& q) {
  const Shape state(ElementType::kU64, {2});
  if (q.has_declared() && !q.declared.SameAs(state)) {
    q.Reject("the result must be u64[2], but is {}", q.declared.ToString(false));
  }
  return state;
}

}  // namespace hlorun::hlo::shape_rules
