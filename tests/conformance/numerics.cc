#include "tests/conformance/numerics.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <thread>

#include "hlo/number_types.h"

namespace hlorun::conformance {
namespace {

#define HL_ONE(opcode, expression, low, high)                                   \
  ElementaryFunction {                                                          \
    opcode, 1, [](double x, double) -> double { return expression; }, low, high \
  }
#define HL_TWO(opcode, expression, low, high)                                     \
  ElementaryFunction {                                                            \
    opcode, 2, [](double x, double y) -> double { return expression; }, low, high \
  }

constexpr ElementaryFunction kFunctions[] = {
    HL_ONE("acos", std::acos(x), -1, 1),
    HL_ONE("acosh", std::acosh(x), 1, 20),
    HL_ONE("asin", std::asin(x), -1, 1),
    HL_ONE("asinh", std::asinh(x), -20, 20),
    HL_ONE("atanh", std::atanh(x), -1, 1),
    HL_ONE("cbrt", std::cbrt(x), -100, 100),
    HL_ONE("cosh", std::cosh(x), -20, 20),
    HL_ONE("cosine", std::cos(x), -100, 100),
    HL_ONE("erf", std::erf(x), -4, 4),
    HL_ONE("exponential", std::exp(x), -90, 90),
    HL_ONE("exponential-minus-one", std::expm1(x), -2, 2),
    HL_ONE("log", std::log(x), 0, 4),
    HL_ONE("log-plus-one", std::log1p(x), -1, 3),
    HL_ONE("logistic", 1 / (1 + std::exp(-x)), -20, 20),
    HL_ONE("rsqrt", 1 / std::sqrt(x), 0, 100),
    HL_ONE("sine", std::sin(x), -100, 100),
    HL_ONE("sinh", std::sinh(x), -20, 20),
    HL_ONE("sqrt", std::sqrt(x), 0, 100),
    HL_ONE("tan", std::tan(x), -100, 100),
    HL_ONE("tanh", std::tanh(x), -5, 5),
    HL_TWO("atan2", std::atan2(x, y), -10, 10),
    HL_TWO("power", std::pow(x, y), 0, 10),
    HL_TWO("remainder", std::fmod(x, y), -100, 100),
};

double Flushed(double x, double smallest_normal) { return std::fabs(x) < smallest_normal ? std::copysign(0.0, x) : x; }

}  // namespace

std::span<const ElementaryFunction> ElementaryFunctions() { return kFunctions; }

template <typename Float>
double ErrorInUlps(Float result, double exact) {
  using Limits = std::numeric_limits<Float>;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto got = static_cast<double>(result);
  const auto least = static_cast<double>((Limits::min)());
  if (std::isnan(exact) || std::isnan(got)) return std::isnan(exact) && std::isnan(got) ? 0 : kInfinity;
  if (got == exact) return 0;
  if (std::isinf(exact)) return kInfinity;
  const double smallest = least * (1 + 4 * static_cast<double>(Limits::epsilon()));
  if (std::fabs(exact) < smallest && std::fabs(got) <= least) return 0;
  if (std::isinf(got) && std::isinf(static_cast<double>(static_cast<Float>(exact)))) return 0;  // rounds to it
  const int exponent = exact == 0 ? Limits::min_exponent - 1 : std::max(std::ilogb(exact), Limits::min_exponent - 1);
  // Infinity stands where the next value would be.
  const double value = std::isinf(got) ? std::copysign(std::ldexp(1.0, Limits::max_exponent - 1) * 2, got) : got;
  return std::fabs(value - exact) / std::ldexp(1.0, exponent - (Limits::digits - 1));
}
template double ErrorInUlps<hlo::half>(hlo::half, double);
template double ErrorInUlps<hlo::bfloat16>(hlo::bfloat16, double);
template double ErrorInUlps<float>(float, double);
template double ErrorInUlps<double>(double, double);

namespace {

// The error against the exact result, where a denormal argument may count as zero.
template <typename Float>
double LeastError(Float got, const ElementaryFunction& function, double x, double y) {
  const auto smallest = static_cast<double>((std::numeric_limits<Float>::min)());
  double error = ErrorInUlps(got, function.reference(x, y));
  if (error == 0 || (std::fabs(x) >= smallest && (function.arguments == 1 || std::fabs(y) >= smallest))) return error;
  for (const double a : {x, Flushed(x, smallest)}) {
    for (const double b : {y, Flushed(y, smallest)})
      error = std::min(error, ErrorInUlps(got, function.reference(a, b)));
  }
  return error;
}

}  // namespace

Measurement::Measurement(Client& client, ElementType type, int arguments, int64_t count, const std::string& only)
    : client_(client), type_(type), count_(count) {
  const std::string array = fmt::format("{}[{}]", hlo::ElementTypeName(type), count);
  std::string text = fmt::format("HloModule numerics\nENTRY e {{\n  x = {} parameter(0)\n", array);
  if (arguments == 2) text += fmt::format("  y = {} parameter(1)\n", array);
  std::string shapes, results;
  for (const ElementaryFunction& function : kFunctions) {
    if (function.arguments != arguments || (!only.empty() && only != function.opcode)) continue;
    const std::string name = fmt::format("f{}", functions_.size());
    text += fmt::format("  {} = {} {}({})\n", name, array, function.opcode, arguments == 2 ? "x, y" : "x");
    shapes += (shapes.empty() ? "" : ", ") + array;
    results += (results.empty() ? "" : ", ") + name;
    functions_.push_back(&function);
  }
  accuracies_.resize(functions_.size());
  if (functions_.empty()) return;
  text += fmt::format("  ROOT t = ({}) tuple({})\n}}\n", shapes, results);
  executable_ = client.Compile(Module::FromText(text, "numerics"), {});
}

template <typename Float>
void Measurement::Compare(std::span<const double> x, std::span<const double> y) {
  std::vector<Array> arguments;
  for (const std::span<const double> values : {x, y}) {
    if (values.empty()) continue;
    std::vector<Float> narrowed;
    for (const double value : values) narrowed.push_back(static_cast<Float>(value));
    arguments.push_back(client_.FromHost(Shape(type_, {count_}), narrowed.data()));
  }
  const std::vector<Array> results = executable_->Run(arguments);
  const auto compare = [&](size_t f) {
    const std::vector<Float> got = results[f].ToVector<Float>();
    Accuracy& worst = accuracies_[f];
    for (size_t i = 0; i < got.size(); ++i) {
      const double b = y.empty() ? 0 : y[i];
      const double ulps = LeastError(got[i], *functions_[f], x[i], b);
      if (ulps <= worst.ulps) continue;
      worst = {ulps, x[i], b, static_cast<double>(got[i]), functions_[f]->reference(x[i], b), worst.values};
    }
    worst.values += static_cast<int64_t>(got.size());
  };
  const size_t threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> workers;
  for (size_t t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      for (size_t f = t; f < functions_.size(); f += threads) compare(f);
    });
  }
}

void Measurement::Run(std::span<const double> x, std::span<const double> y) {
  if (functions_.empty()) return;
  switch (type_) {
    case ElementType::kF64: return Compare<double>(x, y);
    case ElementType::kF16: return Compare<hlo::half>(x, y);
    case ElementType::kBF16: return Compare<hlo::bfloat16>(x, y);
    default: return Compare<float>(x, y);
  }
}

}  // namespace hlorun::conformance
