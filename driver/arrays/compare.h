// Comparison of outputs with expected ones.
#pragma once

#include <optional>
#include <string>

#include "hlo/literal.h"

namespace hlorun {

// Floating results are equal when the largest |difference| <= rel * the largest |expected| (or <= abs, where given)
// and the relative L2 error <= rel; NaN only where NaN is expected, infinities likewise. Integers and predicates are
// compared exactly.
struct Tolerance {
  std::optional<double> relative;  // absent: by type, see DefaultRelative
  std::optional<double> absolute;
};
double DefaultRelative(hlo::ElementType type);

struct Comparison {
  bool equal = true;
  double largest_error = 0;  // |difference|
  double largest_expected = 0;
  double relative_l2 = 0;
  int64_t mismatches = 0;  // elements that are NaN, infinite or (integers) different where they must not be
  int64_t worst = -1;      // row-major index of the worst element
  std::string message;     // one line when not equal: index, both values, largest and relative L2 error
};
Comparison Compare(const hlo::Literal& actual, const hlo::Literal& expected, const Tolerance& tolerance);

// xxh64 of the bytes, 16 hexadecimal digits.
std::string Checksum(const hlo::Literal& literal);
// "[0.1, 0.2, ..., 0.9]": the first few and the last element.
std::string Preview(const hlo::Literal& literal);

}  // namespace hlorun
