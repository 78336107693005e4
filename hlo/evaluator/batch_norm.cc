// The three batch-norm ops, in f64. Statistics are over all dimensions but the feature's; variances are biased.
#include "hlo/error.h"
#include "hlo/evaluator/lanes/lane_op.h"
#include "hlo/evaluator/op_functions.h"

namespace hlorun::hlo {
namespace {

// The array as f64 with the feature of each element.
class Features {
 public:
  Features(const Literal& operand, int64_t feature_index)
      : values_(ConvertedTo(operand, ElementType::kF64)),
        stride_(operand.shape().Strides()[static_cast<size_t>(feature_index)]),
        count_(operand.shape().dimension(feature_index)) {}

  double operator[](int64_t i) const { return values_.values<double>()[static_cast<size_t>(i)]; }
  size_t FeatureOf(int64_t i) const { return static_cast<size_t>(i / stride_ % count_); }
  int64_t count() const { return count_; }
  int64_t ElementCount() const { return values_.ElementCount(); }
  double PerFeature() const { return static_cast<double>(ElementCount()) / static_cast<double>(count_); }

  // The sum over each feature's elements of f(element index).
  template <typename F>
  std::vector<double> Sums(F f) const {
    std::vector<double> sums(static_cast<size_t>(count_));
    for (int64_t i = 0; i < ElementCount(); ++i) sums[FeatureOf(i)] += f(i);
    return sums;
  }

 private:
  Literal values_;
  int64_t stride_;
  int64_t count_;
};

Literal FromDoubles(const Shape& shape, const std::vector<double>& values) {
  Literal result(Shape(ElementType::kF64, shape.dimensions()));
  std::copy(values.begin(), values.end(), result.mutable_values<double>().begin());
  return ConvertedTo(result, shape.element_type());
}

std::vector<double> Doubles(const Literal& literal) {
  const Literal converted = ConvertedTo(literal, ElementType::kF64);
  return {converted.values<double>().begin(), converted.values<double>().end()};
}

Literal Normalized(const Features& x, const Shape& shape, const std::vector<double>& scale,
                   const std::vector<double>& offset, const std::vector<double>& mean,
                   const std::vector<double>& variance, double epsilon) {
  std::vector<double> result(static_cast<size_t>(x.ElementCount()));
  for (int64_t i = 0; i < x.ElementCount(); ++i) {
    const size_t f = x.FeatureOf(i);
    result[static_cast<size_t>(i)] = (x[i] - mean[f]) / std::sqrt(variance[f] + epsilon) * scale[f] + offset[f];
  }
  return FromDoubles(shape, result);
}

}  // namespace

// (operand, scale, offset) -> (normalized, mean, variance)
Literal EvaluateBatchNormTraining(OpCall& call) {
  const auto& norm = call.As<attr::BatchNorm>();
  const Features x(call.operand(0), norm.feature_index);
  std::vector<double> mean = x.Sums([&](int64_t i) { return x[i]; });
  for (double& m : mean) m /= x.PerFeature();
  std::vector<double> variance = x.Sums([&](int64_t i) {
    const double centered = x[i] - mean[x.FeatureOf(i)];
    return centered * centered;
  });
  for (double& v : variance) v /= x.PerFeature();
  Literal result = Normalized(x, call.shape.tuple_shape(0), Doubles(call.operand(1)), Doubles(call.operand(2)), mean,
                              variance, static_cast<double>(norm.epsilon));
  return Literal::Tuple({std::move(result), FromDoubles(call.shape.tuple_shape(1), mean),
                         FromDoubles(call.shape.tuple_shape(2), variance)});
}

// (operand, scale, offset, mean, variance) -> normalized
Literal EvaluateBatchNormInference(OpCall& call) {
  const auto& norm = call.As<attr::BatchNorm>();
  const Features x(call.operand(0), norm.feature_index);
  return Normalized(x, call.shape, Doubles(call.operand(1)), Doubles(call.operand(2)), Doubles(call.operand(3)),
                    Doubles(call.operand(4)), static_cast<double>(norm.epsilon));
}

// (operand, scale, mean, variance, grad_output) -> (grad_operand, grad_scale, grad_offset)
Literal EvaluateBatchNormGrad(OpCall& call) {
  const auto& norm = call.As<attr::BatchNorm>();
  const Features x(call.operand(0), norm.feature_index);
  const std::vector<double> scale = Doubles(call.operand(1));
  const std::vector<double> mean = Doubles(call.operand(2));
  const std::vector<double> variance = Doubles(call.operand(3));
  const Features grad(call.operand(4), norm.feature_index);
  std::vector<double> inverse_deviation;
  for (const double v : variance) inverse_deviation.push_back(1 / std::sqrt(v + static_cast<double>(norm.epsilon)));
  const std::vector<double> grad_offset = grad.Sums([&](int64_t i) { return grad[i]; });
  const std::vector<double> grad_scale = x.Sums([&](int64_t i) {
    const size_t f = x.FeatureOf(i);
    return grad[i] * (x[i] - mean[f]) * inverse_deviation[f];
  });
  std::vector<double> grad_operand(static_cast<size_t>(x.ElementCount()));
  for (int64_t i = 0; i < x.ElementCount(); ++i) {
    const size_t f = x.FeatureOf(i);
    const double normalized = (x[i] - mean[f]) * inverse_deviation[f];
    grad_operand[static_cast<size_t>(i)] =
        scale[f] * inverse_deviation[f] * (grad[i] - (grad_offset[f] + normalized * grad_scale[f]) / x.PerFeature());
  }
  return Literal::Tuple({FromDoubles(call.shape.tuple_shape(0), grad_operand),
                         FromDoubles(call.shape.tuple_shape(1), grad_scale),
                         FromDoubles(call.shape.tuple_shape(2), grad_offset)});
}

}  // namespace hlorun::hlo
