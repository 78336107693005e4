// Functions of complex numbers at the ends of their range, on the device: the evaluator's values.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "tests/driver/evaluator_results.h"

namespace hlorun {
namespace {

using Numbers = std::vector<std::complex<double>>;

constexpr double kInf = INFINITY;

Literal ToLiteral(ElementType type, const Numbers& numbers) {
  Literal literal(Shape(type, {static_cast<int64_t>(numbers.size())}));
  for (size_t i = 0; i < numbers.size(); ++i) literal.SetComplex(static_cast<int64_t>(i), numbers[i]);
  return literal;
}

// Expects opcode(numbers...) to be the evaluator's.
void ExpectAlike(const std::string& opcode, ElementType type, const std::vector<Numbers>& operands) {
  const std::string array = fmt::format("{}[{}]", hlo::ElementTypeName(type), operands[0].size());
  std::string text = "HloModule m\nENTRY e {\n", names;
  std::vector<Literal> arguments;
  for (const Numbers& numbers : operands) {
    text += fmt::format("  x{0} = {1} parameter({0})\n", arguments.size(), array);
    names += fmt::format("{}x{}", names.empty() ? "" : ", ", arguments.size());
    arguments.push_back(ToLiteral(type, numbers));
  }
  const std::string real = type == ElementType::kC64 ? "f32" : "f64";
  const std::string result = opcode == "abs" ? fmt::format("{}[{}]", real, operands[0].size()) : array;
  text += fmt::format("  ROOT r = {} {}({})\n}}", result, opcode, names);
  static const std::shared_ptr<Client> client = Client::Create({});
  const auto executable = client->Compile(Module::FromText(text), {});
  const Literal expected = hlo::Evaluate(*passes::Parse(text), arguments);
  const Literal actual = ToLiterals(executable->Run(ToDevice(*client, arguments)))[0];
  for (size_t i = 0; i < operands[0].size(); ++i) {
    // One at a time: a difference names its number.
    const auto of = [&](const Literal& all) {
      const auto at = static_cast<int64_t>(i);
      return std::vector<double>{all.GetComplex(at).real(), all.GetComplex(at).imag()};
    };
    const std::vector<double> wanted = of(expected), got = of(actual);
    for (size_t part = 0; part < 2; ++part) {
      const bool same_kind =
          std::isnan(wanted[part]) == std::isnan(got[part]) && (!std::isinf(wanted[part]) || wanted[part] == got[part]);
      const bool is_near = !std::isfinite(wanted[part]) ||
                           std::abs(wanted[part] - got[part]) <= 1e-5 * std::max(std::abs(wanted[part]), 1e-10);
      EXPECT_TRUE(same_kind && is_near) << fmt::format("{} of ({}, {}): part {} is {}, expected {}", opcode,
                                                       operands[0][i].real(), operands[0][i].imag(), part, got[part],
                                                       wanted[part]);
    }
  }
}

TEST(ComplexEdges, LargeNumbers) {
  const Numbers large = {{1e38, 1e38}, {3e38, -1e38}, {-3e38, 1}, {2e19, 1}, {1e20, 1e20}, {1, 1e30}};
  for (const char* opcode : {"abs", "sign", "log", "log-plus-one", "sqrt", "rsqrt"})
    ExpectAlike(opcode, ElementType::kC64, {large});
  const Numbers larger = {{1.2e308, 1.2e308}, {-1.7e308, 5e307}, {1e160, 1}, {2e200, -3e200}};
  for (const char* opcode : {"abs", "sign", "log", "log-plus-one", "sqrt", "rsqrt"})
    ExpectAlike(opcode, ElementType::kC128, {larger});
}

TEST(ComplexEdges, Exponents) {
  ExpectAlike("exponential", ElementType::kC64, {{{89, 1}, {88.5, 1.5}, {-100, 1}, {3, -2}}});
  ExpectAlike("logistic", ElementType::kC64, {{{-100, 1}, {-89, -1}, {100, 1}, {-2, 3}}});
  ExpectAlike("logistic", ElementType::kC128, {{{-800, 1}, {-710, 3}}});
  ExpectAlike("exponential-minus-one", ElementType::kC64, {{{89, 1}, {88.8, 0.1}, {kInf, 0}, {-3, 2}, {1e-3, 1e-3}}});
  ExpectAlike("tanh", ElementType::kC64,
              {{{NAN, 1}, {3e38, 3e38}, {-30, 1}, {kInf, kInf}, {-kInf, kInf}, {0.1, 1.57}, {0, 3}, {2, -1}}});
  ExpectAlike("tan", ElementType::kC64, {{{1, NAN}, {0.5, 30}, {1.5, 0.01}}});
}

TEST(ComplexEdges, Infinities) {
  ExpectAlike("sqrt", ElementType::kC64, {{{0, kInf}, {-2, kInf}, {3, -kInf}, {kInf, 1}, {-kInf, 1}}});
  ExpectAlike("rsqrt", ElementType::kC64, {{{0, kInf}, {kInf, 1}}});
  ExpectAlike(
      "divide", ElementType::kC64,
      {{{0, 0}, {1, 2}, {kInf, -kInf}, {kInf, 3}, {3, 4}}, {{kInf, kInf}, {kInf, 1}, {-0.0, 0}, {2, 5}, {0, 0}}});
  ExpectAlike("power", ElementType::kC64,
              {{{kInf, 1}, {NAN, 2}, {0, 0}, {2, 1}}, {{0, 0}, {0, 0}, {0, 0}, {0.5, 0.25}}});
}

}  // namespace
}  // namespace hlorun
