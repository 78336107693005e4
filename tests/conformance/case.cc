#include "tests/conformance/case.h"

#include <cmath>
#include <limits>

#include "hlo/number_types.h"
#include "hlo/text/parser.h"
#include "hlo/verifier.h"

namespace hlorun::conformance {

using hlo::ElementType;

std::vector<Case> Candidates() {
  std::vector<Case> cases;
  AddElementwiseCases(cases);
  AddConversionCases(cases);
  AddTemplateCases(cases);
  return cases;
}

std::vector<Case> AllCases() {
  std::vector<Case> cases = Candidates();
  std::erase_if(cases, [](const Case& c) {
    try {
      hlo::VerifyModule(*hlo::ParseModule(c.text, {.file_name = c.name}));
      return false;
    } catch (const Error&) {
      return true;
    }
  });
  return cases;
}

std::vector<double> EdgeValues(ElementType type) {
  const int bits = hlo::BitsOf(type);
  if (type == ElementType::kPred) return {0, 1};
  if (hlo::IsUnsigned(type)) {
    const double most = std::ldexp(1.0, bits) - 1;
    return bits < 8 ? std::vector<double>{0, 1, most}
                    : std::vector<double>{0, 1, 2, 7, 31, 64, most, std::ldexp(1.0, bits - 1)};
  }
  if (hlo::IsSigned(type)) {
    const double least = -std::ldexp(1.0, bits - 1);
    if (bits < 8) return {0, 1, -1, least, -least - 1};
    return {0, 1, -1, 2, -3, 7, 33, 64, least, -least - 1};
  }
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (bits < 16) return {0, 1, -1, 0.5, -2, 3, 0.25, infinity, -infinity, nan};
  const double largest = type == ElementType::kF16    ? 65504
                         : type == ElementType::kBF16 ? 3.3895313892515355e38
                         : bits == 64 && type == ElementType::kF64
                             ? std::numeric_limits<double>::max()
                             : static_cast<double>(std::numeric_limits<float>::max());
  const double denormal = type == ElementType::kF16 ? 6e-7 : type == ElementType::kF64 ? 1e-310 : 1e-40;
  return {0,    -0.0,    1,        -1,       0.5,       -0.5, 1.5,      -2.5,     3,
          7.25, largest, -largest, infinity, -infinity, nan,  denormal, -denormal};
}

hlo::Literal ArrayOf(ElementType type, const std::vector<double>& values) {
  hlo::Literal literal(hlo::Shape(type, {static_cast<int64_t>(values.size())}));
  for (size_t i = 0; i < values.size(); ++i) literal.SetDouble(static_cast<int64_t>(i), values[i]);
  return literal;
}

}  // namespace hlorun::conformance
