#include "driver/arrays/compare.h"

#include <xxhash.h>

#include <cmath>
#include <limits>

#include "hlo/error.h"

namespace hlorun {
namespace {

using hlo::ElementType;

std::string IndexText(const hlo::Shape& shape, int64_t linear) {
  hlo::Dims index(static_cast<size_t>(shape.rank()));
  for (size_t d = index.size(); d-- > 0;) {
    index[d] = linear % shape.dimensions()[d];
    linear /= shape.dimensions()[d];
  }
  return fmt::format("[{}]", fmt::join(index, ","));
}

std::string ValueText(const hlo::Literal& literal, int64_t i) {
  if (literal.shape().IsToken()) return "token";
  if (hlo::IsComplex(literal.element_type())) {
    const auto value = literal.GetComplex(i);
    return fmt::format("({:.9g}, {:.9g})", value.real(), value.imag());
  }
  if (hlo::IsFloating(literal.element_type())) return fmt::format("{:.9g}", literal.GetDouble(i));
  if (literal.element_type() == ElementType::kU64) return fmt::format("{}", static_cast<uint64_t>(literal.GetInt(i)));
  return fmt::format("{}", literal.GetInt(i));
}

bool SameSpecial(double a, double b) { return (std::isnan(a) && std::isnan(b)) || a == b; }

// Of two numbers, part by part: what is finite in both has a difference, what is not must be the same.
struct Difference {
  Difference(std::complex<double> a, std::complex<double> e) {
    const std::complex<double> real = OfPart(a.real(), e.real()), imaginary = OfPart(a.imag(), e.imag());
    error = {real.real(), imaginary.real()};
    expected = {real.imag(), imaginary.imag()};
  }

  bool same_kind = true;
  std::complex<double> error, expected;  // of the finite parts

 private:
  // The error, and the expected value.
  std::complex<double> OfPart(double a, double e) {
    if (std::isfinite(a) && std::isfinite(e)) return {a - e, e};
    same_kind = same_kind && SameSpecial(a, e);
    return {};
  }
};

// Squares of f64 leave its range, those of the wider type do not.
long double Square(std::complex<double> value) { return std::norm(std::complex<long double>(value)); }

void CompareExactly(const hlo::Literal& actual, const hlo::Literal& expected, Comparison& result) {
  for (int64_t i = 0; i < expected.ElementCount(); ++i) {
    const auto difference = static_cast<double>(actual.GetInt(i)) - static_cast<double>(expected.GetInt(i));
    if (actual.GetInt(i) == expected.GetInt(i)) continue;
    ++result.mismatches;
    if (result.worst < 0 || std::abs(difference) > result.largest_error) result.worst = i;
    result.largest_error = std::max(result.largest_error, std::abs(difference));
  }
  result.equal = result.mismatches == 0;
}

void CompareFloating(const hlo::Literal& actual, const hlo::Literal& expected, const Tolerance& tolerance,
                     Comparison& result) {
  long double squares = 0, error_squares = 0;
  int64_t special = -1;
  for (int64_t i = 0; i < expected.ElementCount(); ++i) {
    const Difference difference(actual.GetComplex(i), expected.GetComplex(i));
    if (!difference.same_kind) {
      ++result.mismatches;
      if (special < 0) special = i;
      continue;
    }
    const double error = std::abs(difference.error);
    if (error > result.largest_error || result.worst < 0) {
      result.largest_error = error;
      result.worst = i;
    }
    result.largest_expected = std::max(result.largest_expected, std::abs(difference.expected));
    squares += Square(difference.expected);
    error_squares += Square(difference.error);
  }
  if (special >= 0) result.worst = special;
  constexpr long double kLeast = std::numeric_limits<long double>::min(), kMost = std::numeric_limits<double>::max();
  const long double l2 = error_squares == 0 ? 0 : std::sqrt(error_squares / std::max(squares, kLeast));
  result.relative_l2 = static_cast<double>(std::min(l2, kMost));
  const double relative = tolerance.relative.value_or(DefaultRelative(expected.element_type()));
  const double bound = tolerance.absolute.value_or(relative * result.largest_expected);
  const bool l2_matters = !tolerance.absolute.has_value() || tolerance.relative.has_value();
  result.equal =
      result.mismatches == 0 && result.largest_error <= bound && (!l2_matters || result.relative_l2 <= relative);
}

}  // namespace

double DefaultRelative(ElementType type) {
  switch (type) {
    case ElementType::kF64:
    case ElementType::kC128: return 1e-10;
    case ElementType::kF32:
    case ElementType::kC64: return 1e-4;
    case ElementType::kF16: return 5e-3;
    case ElementType::kBF16: return 2e-2;
    default: return 0.25;  // f8 and narrower: one unit of a 2-bit mantissa
  }
}

Comparison Compare(const hlo::Literal& actual, const hlo::Literal& expected, const Tolerance& tolerance) {
  Comparison result;
  if (!actual.shape().SameAs(expected.shape())) {
    result.equal = false;
    result.message = fmt::format("the shape is {}, {} is expected", actual.shape().ToString(false),
                                 expected.shape().ToString(false));
    return result;
  }
  if (expected.shape().IsToken() || expected.ElementCount() == 0) return result;
  const bool exact = !hlo::IsFloating(expected.element_type()) && !hlo::IsComplex(expected.element_type());
  if (exact) {
    CompareExactly(actual, expected, result);
  } else {
    CompareFloating(actual, expected, tolerance, result);
  }
  if (!result.equal) {
    result.message = fmt::format(
        "element {}: {}, expected {}; largest error {:.4g} (largest expected value {:.4g}), relative L2 error {:.4g}{}",
        IndexText(expected.shape(), result.worst), ValueText(actual, result.worst), ValueText(expected, result.worst),
        result.largest_error, result.largest_expected, result.relative_l2,
        result.mismatches > 0 ? fmt::format(", {} elements differ in kind", result.mismatches) : "");
  }
  return result;
}

std::string Checksum(const hlo::Literal& literal) {
  return fmt::format("{:016x}", XXH64(literal.data(), static_cast<size_t>(literal.ByteSize()), 0));
}

std::string Preview(const hlo::Literal& literal) {
  const int64_t count = literal.ElementCount();
  std::string text = "[";
  const int64_t shown = std::min<int64_t>(count, 4);
  for (int64_t i = 0; i < shown; ++i) text += (i > 0 ? ", " : "") + ValueText(literal, i);
  if (count > shown) text += (count > shown + 1 ? ", ..., " : ", ") + ValueText(literal, count - 1);
  return text + "]";
}

}  // namespace hlorun
