// convert between all pairs of types, and bitcast-convert between all pairs of related widths.
#include <cmath>

#include "hlo/element_type.h"
#include "tests/conformance/case.h"

namespace hlorun::conformance {
namespace {

using hlo::ElementType;

std::vector<double> ConvertibleValues(ElementType from) {
  std::vector<double> values = EdgeValues(hlo::RealOf(from));
  if (hlo::IsFloating(hlo::RealOf(from))) {
    // Around the limits of the integers, halves that round, ties between narrow floats.
    for (int bits = 1; bits <= 64; bits *= 2) {
      for (const double nudge : {-1.0, -0.5, 0.0, 0.5, 1.0}) {
        values.push_back(std::ldexp(1.0, bits) + nudge);
        values.push_back(-std::ldexp(1.0, bits - 1) + nudge);
      }
    }
    for (int i = 0; i < 64; ++i) values.push_back(std::ldexp(1.0 + i / 64.0, i % 12 - 8));
  } else if (hlo::BitsOf(from) >= 32) {
    values.insert(values.end(), {16777217, 16777219, 33554435, 65519, 65520, 257, 449, 448, 464, 465});
  }
  return values;
}

}  // namespace

void AddConversionCases(std::vector<Case>& cases) {
  for (const ElementType from : kArrayTypes) {
    for (const ElementType to : kArrayTypes) {
      if (from == to || (hlo::IsComplex(from) && !hlo::IsComplex(to))) continue;
      const std::string from_name(hlo::ElementTypeName(from));
      const std::string to_name(hlo::ElementTypeName(to));
      const std::vector<double> values = ConvertibleValues(from);
      const std::string size = "[" + std::to_string(values.size()) + "]";
      Case c;
      c.name = "convert/" + from_name + "-" + to_name;
      c.text = "HloModule m\nENTRY e {\n  x = " + from_name + size + " parameter(0)\n  ROOT r = " + to_name + size +
               " convert(x)\n}\n";
      c.inputs = {ArrayOf(from, values)};
      if (from == ElementType::kF4E2M1FN && hlo::IsInteger(to)) c.oracle_fault = "6 is read as infinity and saturates";
      cases.push_back(std::move(c));
    }
  }
  for (const ElementType from : kArrayTypes) {
    for (const ElementType to : kArrayTypes) {
      const int from_bits = hlo::BitsOf(from);
      const int to_bits = hlo::BitsOf(to);
      const bool one_is_pred = (from == ElementType::kPred) != (to == ElementType::kPred);
      if (one_is_pred || hlo::IsComplex(from) != hlo::IsComplex(to)) continue;
      const std::string wide = from_bits > to_bits ? "," + std::to_string(from_bits / to_bits) : "";
      const std::string narrow = from_bits < to_bits ? "," + std::to_string(to_bits / from_bits) : "";
      Case c;
      const std::string from_name(hlo::ElementTypeName(from));
      const std::string to_name(hlo::ElementTypeName(to));
      c.name = "bitcast-convert/" + from_name + "-" + to_name;
      c.text = "HloModule m\nENTRY e {\n  x = " + from_name + "[3" + narrow + "] parameter(0)\n  ROOT r = " + to_name +
               "[3" + wide + "] bitcast-convert(x)\n}\n";
      hlo::Literal x(hlo::Shape(from, narrow.empty() ? hlo::Dims{3} : hlo::Dims{3, to_bits / from_bits}));
      for (int64_t i = 0; i < x.ElementCount(); ++i) x.SetDouble(i, static_cast<double>(i % 3));
      c.inputs = {x};
      cases.push_back(std::move(c));
    }
  }
}

}  // namespace hlorun::conformance
