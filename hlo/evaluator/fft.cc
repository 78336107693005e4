// fft: computed in f64, by halving even lengths and by the definition for odd ones.
#include "hlo/evaluator/fft.h"

#include <complex>
#include <numbers>

#include "hlo/error.h"
#include "hlo/evaluator/lanes/lane_op.h"
#include "hlo/evaluator/op_functions.h"
#include "hlo/number_types.h"

namespace hlorun::hlo {

using Value = std::complex<double>;

namespace {

// Of every step-th element of x from `first` on; roots[k] = e^(sign 2 pi i k / n) of all n of them.
std::vector<Value> Transform(const std::vector<Value>& x, size_t first, size_t step, const std::vector<Value>& roots) {
  const size_t n = x.size() / step;
  if (n == 1) return {x[first]};
  std::vector<Value> result(n);
  if (n % 2 != 0) {
    for (size_t k = 0; k < n; ++k) {
      for (size_t j = 0; j < n; ++j) result[k] += x[first + j * step] * roots[j * k % n * step];
    }
    return result;
  }
  const std::vector<Value> even = Transform(x, first, 2 * step, roots),
                           odd = Transform(x, first + step, 2 * step, roots);
  for (size_t k = 0; k < n / 2; ++k) {
    const Value turned = roots[k * step] * odd[k];
    result[k] = even[k] + turned;
    result[k + n / 2] = even[k] - turned;
  }
  return result;
}

}  // namespace

std::vector<Value> TransformInDouble(const std::vector<Value>& x, double sign) {
  const size_t n = x.size();
  if (n == 0) return x;
  std::vector<Value> roots;
  for (size_t k = 0; k < n; ++k)
    roots.push_back(std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n)));
  return Transform(x, 0, 1, roots);
}

namespace {

// Transforms all lines along dimension `d` of a row-major array.
void TransformDimension(std::vector<Value>& values, const Dims& dimensions, size_t d, bool inverse) {
  const auto n = static_cast<size_t>(dimensions[d]);
  size_t stride = 1;
  for (size_t i = d + 1; i < dimensions.size(); ++i) stride *= static_cast<size_t>(dimensions[i]);
  std::vector<Value> line(n);
  for (size_t start = 0; start < values.size(); ++start) {
    if (start / stride % n != 0) continue;
    for (size_t i = 0; i < n; ++i) line[i] = values[start + i * stride];
    line = TransformInDouble(line, inverse ? 1 : -1);
    for (size_t i = 0; i < n; ++i) {
      values[start + i * stride] = inverse ? line[i] / static_cast<double>(n) : line[i];
    }
  }
}

// The last dimension of a half spectrum extended to `length` by conjugate symmetry along it; for inverse real
// transforms, whose other dimensions have been transformed already.
std::vector<Value> Mirrored(const std::vector<Value>& half, size_t half_length, size_t length) {
  std::vector<Value> full(half.size() / half_length * length);
  for (size_t row = 0; row < half.size() / half_length; ++row) {
    for (size_t i = 0; i < length; ++i) {
      const size_t mirror = length - i;
      full[row * length + i] = i < half_length        ? half[row * half_length + i]
                               : mirror < half_length ? std::conj(half[row * half_length + mirror])
                                                      : Value(0);
    }
    full[row * length] = full[row * length].real();
    if (length % 2 == 0 && length > 0) full[row * length + length / 2] = full[row * length + length / 2].real();
  }
  return full;
}

}  // namespace

Literal EvaluateFft(OpCall& call) {
  const auto& fft = call.As<attr::Fft>();
  const Literal& operand = call.operand(0);
  Dims dimensions = operand.shape().dimensions();
  std::vector<Value> values(static_cast<size_t>(operand.ElementCount()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = operand.GetComplex(static_cast<int64_t>(i));
  call.evaluation.Charge(operand.ElementCount() * 64);
  const size_t first = dimensions.size() - fft.length.size();
  const size_t last = dimensions.size() - 1;
  const bool inverse = fft.type == FftType::kIfft || fft.type == FftType::kIrfft;
  Literal result(call.shape);
  if (call.shape.ElementCount() == 0) return result;
  if (fft.type == FftType::kIrfft) {
    for (size_t d = first; d < last; ++d) TransformDimension(values, dimensions, d, true);
    values = Mirrored(values, static_cast<size_t>(dimensions[last]), static_cast<size_t>(fft.length.back()));
    dimensions[last] = fft.length.back();
    TransformDimension(values, dimensions, last, true);
  } else {
    for (size_t d = first; d <= last; ++d) TransformDimension(values, dimensions, d, inverse);
  }
  // A real transform keeps the first half of the last dimension.
  const auto kept = static_cast<size_t>(call.shape.dimensions()[last]);
  const auto length = static_cast<size_t>(dimensions[last]);
  for (size_t i = 0; i < static_cast<size_t>(call.shape.ElementCount()); ++i) {
    result.SetComplex(static_cast<int64_t>(i), values[i / kept * length + i % kept]);
  }
  return result;
}

}  // namespace hlorun::hlo
