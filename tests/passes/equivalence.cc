#include "tests/passes/equivalence.h"
#include "passes/generic_context.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "hlo/evaluator/evaluator.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"
#include "hlo/verifier.h"

namespace hlorun::passes {

using hlo::Literal;

namespace {

double RandomReal(std::mt19937_64& random, Inputs inputs) {
  std::uniform_real_distribution<double> mild(-2, 2);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kSpecial[] = {0.0,    -0.0,   kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN(),
                                 1.0,    -1.0,   0.5,       2.0,        1e30,
                                 -1e-30, 65504.0};
  if (inputs == Inputs::kHarsh && random() % 2 == 0) return kSpecial[random() % std::size(kSpecial)];
  return mild(random);
}

int64_t RandomInteger(std::mt19937_64& random, hlo::ElementType type, Inputs inputs) {
  if (type == hlo::ElementType::kPred) return static_cast<int64_t>(random() % 2);
  const int bits = hlo::BitsOf(type);
  const auto most = static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);
  const int64_t special[] = {0, 1, -1, most, -most - 1, 2};
  if (inputs == Inputs::kHarsh && random() % 3 == 0) return special[random() % std::size(special)];
  return static_cast<int64_t>(random() % 7) - (hlo::IsSigned(type) ? 3 : 0);
}

Literal RandomLiteral(const hlo::Shape& shape, std::mt19937_64& random, Inputs inputs) {
  if (shape.IsTuple()) {
    std::vector<Literal> elements;
    for (const hlo::Shape& element : shape.tuple_shapes()) elements.push_back(RandomLiteral(element, random, inputs));
    return Literal::Tuple(std::move(elements));
  }
  Literal literal(shape);
  if (!shape.IsArray()) return literal;
  for (int64_t i = 0; i < literal.ElementCount(); ++i) {
    if (hlo::IsFloating(shape.element_type())) {
      literal.SetDouble(i, RandomReal(random, inputs));
    } else if (hlo::IsComplex(shape.element_type())) {
      literal.SetComplex(i, {RandomReal(random, Inputs::kMild), RandomReal(random, Inputs::kMild)});
    } else {
      literal.SetInt(i, RandomInteger(random, shape.element_type(), inputs));
    }
  }
  return literal;
}

double Flushed(double value) {
  return std::abs(value) < static_cast<double>(std::numeric_limits<float>::min()) ? std::copysign(0.0, value) : value;
}

bool SameReal(double a, double b, double bound) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) == std::isnan(b);
  if (bound < 0) return Flushed(a) == Flushed(b) && std::signbit(Flushed(a)) == std::signbit(Flushed(b));
  return a == b || std::abs(a - b) <= bound;
}

}  // namespace

std::unique_ptr<hlo::Module> Parse(std::string_view text) { return hlo::ParseModule(text); }

std::vector<Literal> RandomArguments(const hlo::Module& module, Inputs inputs, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Literal> arguments;
  for (const hlo::Instruction* parameter : module.entry()->parameters()) {
    arguments.push_back(RandomLiteral(parameter->shape(), random, inputs));
  }
  return arguments;
}

std::string Difference(const Literal& expected, const Literal& actual, const Tolerance& tolerance) {
  if (!expected.shape().SameAs(actual.shape())) {
    return fmt::format("shape {} became {}", expected.shape().ToString(), actual.shape().ToString());
  }
  for (size_t i = 0; i < expected.elements().size(); ++i) {
    const std::string difference = Difference(expected.elements()[i], actual.elements()[i], tolerance);
    if (!difference.empty()) return fmt::format("element {}: {}", i, difference);
  }
  const hlo::ElementType type = expected.element_type();
  if (!expected.shape().IsArray()) return "";
  const bool real = hlo::IsFloating(type), complex = hlo::IsComplex(type);
  double bound = -1;
  if ((real || complex) && !tolerance.exact) {
    double largest = 1e-3;
    for (int64_t i = 0; i < expected.ElementCount(); ++i) {
      const double magnitude = std::abs(expected.GetComplex(i));
      if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
    }
    const double scale = hlo::BitsOf(type) < 16 ? 3e4 : hlo::BitsOf(type) == 16 ? 2e3 : 1;
    bound = tolerance.relative * scale * largest;
  }
  for (int64_t i = 0; i < expected.ElementCount(); ++i) {
    const std::complex<double> a = expected.GetComplex(i), b = actual.GetComplex(i);
    const bool same = real || complex ? SameReal(a.real(), b.real(), bound) && SameReal(a.imag(), b.imag(), bound)
                                      : expected.GetInt(i) == actual.GetInt(i);
    if (!same) return fmt::format("[{}] {}+{}i became {}+{}i", i, a.real(), a.imag(), b.real(), b.imag());
  }
  return "";
}

std::unique_ptr<hlo::Module> RunPass(std::string_view before, Pass& pass, const KernelModel& kernels) {
  std::unique_ptr<hlo::Module> module = Parse(before);
  GenericContext context(kernels);
  pass.Run(*module, context);
  hlo::VerifyModule(*module);
  return module;
}

std::string RunAndCompare(std::string_view before, Pass& pass, const Tolerance& tolerance, const KernelModel& kernels) {
  const std::unique_ptr<hlo::Module> original = Parse(before);
  hlo::VerifyModule(*original);
  const std::unique_ptr<hlo::Module> result = RunPass(before, pass, kernels);
  const Inputs inputs = tolerance.exact ? Inputs::kHarsh : Inputs::kMild;
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    const std::vector<Literal> arguments = RandomArguments(*original, inputs, seed);
    const std::string difference =
        Difference(hlo::Evaluate(*original, arguments), hlo::Evaluate(*result, arguments), tolerance);
    EXPECT_EQ(difference, "") << hlo::PrintModule(*result);
  }
  return hlo::PrintModule(*result);
}

int64_t Count(const hlo::Module& module, hlo::Opcode opcode) {
  int64_t count = 0;
  for (const auto& computation : module.computations()) {
    for (const auto& instruction : computation->instructions()) count += instruction->Is(opcode) ? 1 : 0;
  }
  return count;
}

}  // namespace hlorun::passes
