// The C library's f64 functions, which the devices' are measured against, held against MPFR. HLORUN_MPFR_VALUES: how
// many seeded arguments of each function (scripts/soak takes 50,000: a million in all).
#include <gtest/gtest.h>
#include <mpfr.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <map>
#include <random>
#include <string>

#include "tests/conformance/numerics.h"

namespace hlorun::conformance {
namespace {

constexpr mpfr_prec_t kPrecision = 120;

using Function = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);
using Function2 = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t);

int Logistic(mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t mode) {
  mpfr_neg(result, x, mode);
  mpfr_exp(result, result, mode);
  mpfr_add_ui(result, result, 1, mode);
  return mpfr_ui_div(result, 1, result, mode);
}

const std::map<std::string, Function>& OfOne() {
  static const std::map<std::string, Function> kFunctions = {
      {"acos", mpfr_acos},
      {"acosh", mpfr_acosh},
      {"asin", mpfr_asin},
      {"asinh", mpfr_asinh},
      {"atanh", mpfr_atanh},
      {"cbrt", mpfr_cbrt},
      {"cosh", mpfr_cosh},
      {"cosine", mpfr_cos},
      {"erf", mpfr_erf},
      {"exponential", mpfr_exp},
      {"exponential-minus-one", mpfr_expm1},
      {"log", mpfr_log},
      {"log-plus-one", mpfr_log1p},
      {"logistic", Logistic},
      {"rsqrt", mpfr_rec_sqrt},
      {"sine", mpfr_sin},
      {"sinh", mpfr_sinh},
      {"sqrt", mpfr_sqrt},
      {"tan", mpfr_tan},
      {"tanh", mpfr_tanh},
  };
  return kFunctions;
}
const std::map<std::string, Function2>& OfTwo() {
  static const std::map<std::string, Function2> kFunctions = {
      {"atan2", mpfr_atan2}, {"power", mpfr_pow}, {"remainder", mpfr_fmod}};
  return kFunctions;
}

class Number {
 public:
  Number() { mpfr_init2(value, kPrecision); }
  ~Number() { mpfr_clear(value); }
  Number(const Number&) = delete;
  Number& operator=(const Number&) = delete;
  mpfr_t value;
};

double Exact(const ElementaryFunction& function, double x, double y) {
  static Number a, b, result;
  mpfr_set_d(a.value, x, MPFR_RNDN);
  mpfr_set_d(b.value, y, MPFR_RNDN);
  if (function.arguments == 2) {
    OfTwo().at(function.opcode)(result.value, a.value, b.value, MPFR_RNDN);
  } else {
    OfOne().at(function.opcode)(result.value, a.value, MPFR_RNDN);
  }
  return mpfr_get_d(result.value, MPFR_RNDN);
}

TEST(ReferenceFunctionsTest, TheCLibraryIsWithinTwoUnitsOfMpfr) {
  const char* given = std::getenv("HLORUN_MPFR_VALUES");
  const int values = given != nullptr ? std::atoi(given) : 2000;
  for (const ElementaryFunction& function : ElementaryFunctions()) {
    std::mt19937_64 engine(7);
    double worst = 0, at_x = 0, at_y = 0;
    for (int i = 0; i < values; ++i) {
      // The arguments are f32, as those of the sweeps are: half of them any bits, half in the usual range.
      const auto draw = [&] {
        const uint64_t bits = engine();
        const double usual =
            function.low + (function.high - function.low) * std::ldexp(static_cast<double>(engine() >> 11), -53);
        return i % 2 == 0 ? static_cast<double>(static_cast<float>(usual))
                          : static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
      };
      const double x = draw(), y = function.arguments == 2 ? draw() : 0;
      const double error = ErrorInUlps(function.reference(x, y), Exact(function, x, y));
      if (error > worst) worst = error, at_x = x, at_y = y;
    }
    // 1 / sqrt and 1 / (1 + e^-x) round more than once.
    EXPECT_LE(worst, 2) << function.opcode << " at " << at_x << ", " << at_y;
    RecordProperty(function.opcode, std::to_string(worst));
  }
}

}  // namespace
}  // namespace hlorun::conformance
