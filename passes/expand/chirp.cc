#include "passes/expand/chirp.h"

#include <complex>
#include <numbers>
#include <vector>

#include "hlo/evaluator/fft.h"

namespace hlorun::passes {
namespace {

using Value = std::complex<double>;

// The least of 2^a, 3 2^a, 5 2^a, 9 2^a, 15 2^a that is at least `least`.
int64_t SmoothLength(int64_t least) {
  int64_t best = 0;
  for (const int64_t odd : {1, 3, 5, 9, 15}) {
    int64_t length = odd;
    while (length < least) length *= 2;
    if (best == 0 || length < best) best = length;
  }
  return best;
}

Chirp::Parts PartsOf(hlo::ElementType type, const std::vector<Value>& values) {
  const hlo::Shape shape(type, {static_cast<int64_t>(values.size())});
  Chirp::Parts parts = {hlo::Literal(shape), hlo::Literal(shape)};
  for (size_t i = 0; i < values.size(); ++i) {
    parts[0].SetDouble(static_cast<int64_t>(i), values[i].real());
    parts[1].SetDouble(static_cast<int64_t>(i), values[i].imag());
  }
  return parts;
}

}  // namespace

Chirp ChirpOf(hlo::ElementType type, int64_t n, bool inverse) {
  const int64_t length = SmoothLength(2 * n - 1);
  std::vector<Value> factors, wrapped(static_cast<size_t>(length));
  for (int64_t j = 0; j < n; ++j) {
    const double turns = static_cast<double>(j * j % (2 * n)) / static_cast<double>(n);
    factors.push_back(std::polar(1.0, (inverse ? 1 : -1) * std::numbers::pi * turns));
    wrapped[static_cast<size_t>(j)] = std::conj(factors.back()) / static_cast<double>(length);
    if (j > 0) wrapped[static_cast<size_t>(length - j)] = wrapped[static_cast<size_t>(j)];
  }
  return {length, PartsOf(type, factors), PartsOf(type, hlo::TransformInDouble(wrapped, -1))};
}

}  // namespace hlorun::passes
