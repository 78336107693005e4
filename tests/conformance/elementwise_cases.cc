// Every elementwise op in every type that it takes, on edge values (all pairs of them, for two operands) and on others.
#include <cmath>
#include <random>

#include "hlo/element_type.h"
#include "hlo/opcode.h"
#include "tests/conformance/case.h"

namespace hlorun::conformance {
namespace {

using hlo::ElementType;
using Types = std::vector<ElementType>;

const Types kIntegers = {ElementType::kS8, ElementType::kS16, ElementType::kS32, ElementType::kS64,
                         ElementType::kU8, ElementType::kU16, ElementType::kU32, ElementType::kU64,
                         ElementType::kS4, ElementType::kU4,  ElementType::kS2,  ElementType::kU2};
const Types kFloats = {ElementType::kF32, ElementType::kF64, ElementType::kBF16, ElementType::kF16};
const Types kSmallFloats = {ElementType::kF8E5M2,     ElementType::kF8E4M3FN,   ElementType::kF8E4M3B11FNUZ,
                            ElementType::kF8E5M2FNUZ, ElementType::kF8E4M3FNUZ, ElementType::kF8E4M3,
                            ElementType::kF8E3M4,     ElementType::kF4E2M1FN,   ElementType::kF8E8M0FNU};
const Types kComplex = {ElementType::kC64, ElementType::kC128};
const Types kPredicate = {ElementType::kPred};

Types operator+(Types a, const Types& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const Types kEvery = kPredicate + kIntegers + kFloats + kComplex + kSmallFloats;

// Ranges of the random values, by the op's domain.
struct Op {
  const char* name;
  double ulps = 0;  // of f32; f64 is given more, narrower types one
  double low = -8;
  double high = 8;
  bool edges = true;
  bool real = false;  // not of complex numbers: XLA:CPU has no such op, JAX expands it
};

std::vector<double> RandomValues(ElementType type, double low, double high, uint64_t seed, size_t count) {
  std::mt19937_64 engine(seed);
  std::vector<double> values;
  for (size_t i = 0; i < count; ++i) {
    const double fraction = std::ldexp(static_cast<double>(engine() >> 11), -53);
    double value = low + (high - low) * fraction;
    if (hlo::IsInteger(type)) value = std::floor(hlo::IsUnsigned(type) ? std::fabs(value) : value);
    if (type == ElementType::kPred) value = fraction < 0.5 ? 0 : 1;
    values.push_back(value);
  }
  return values;
}

double UlpsFor(const Op& op, ElementType type) {
  if (op.ulps == 0) return 0;
  const int bits = hlo::BitsOf(hlo::RealOf(type));
  return bits == 64 ? op.ulps * 4 : bits == 32 ? op.ulps : 1;
}

// Complex operands: real parts `values`, imaginary parts the same in another order.
hlo::Literal Operand(ElementType type, const std::vector<double>& values) {
  if (!hlo::IsComplex(type)) return ArrayOf(type, values);
  hlo::Literal literal(hlo::Shape(type, {static_cast<int64_t>(values.size())}));
  for (size_t i = 0; i < values.size(); ++i) {
    literal.SetComplex(static_cast<int64_t>(i), {values[i], values[(i * 7 + 3) % values.size()]});
  }
  return literal;
}

std::string Name(ElementType type) { return std::string(hlo::ElementTypeName(type)); }

void AddUnary(std::vector<Case>& cases, const Op& op, ElementType type, ElementType result) {
  std::vector<double> values = RandomValues(type, op.low, op.high, 1, 40);
  if (op.edges && !hlo::IsComplex(type)) {
    const std::vector<double> edges = EdgeValues(type);
    values.insert(values.end(), edges.begin(), edges.end());
  }
  Case c;
  c.name = std::string(op.name) + "/" + Name(type);
  const std::string n = std::to_string(values.size());
  c.text = "HloModule m\nENTRY e {\n  x = " + Name(type) + "[" + n + "] parameter(0)\n  ROOT r = " + Name(result) +
           "[" + n + "] " + op.name + "(x)\n}\n";
  c.inputs = {Operand(type, values)};
  c.ulps = UlpsFor(op, type);
  if (c.name.starts_with("cbrt/")) c.oracle_fault = "noise for denormals";
  c.relative = hlo::IsComplex(type) ? (type == ElementType::kC64 ? 4e-6 : 1e-14) : 0;
  cases.push_back(std::move(c));
}

void AddBinary(std::vector<Case>& cases, const Op& op, ElementType type, const std::string& attributes,
               const std::string& suffix, ElementType result) {
  std::vector<double> a = RandomValues(type, op.low, op.high, 1, 40);
  std::vector<double> b = RandomValues(type, op.low, op.high, 2, 40);
  if (op.edges && !hlo::IsComplex(type)) {
    for (const double x : EdgeValues(type)) {
      for (const double y : EdgeValues(type)) {
        a.push_back(x);
        b.push_back(y);
      }
    }
  }
  Case c;
  c.name = std::string(op.name) + suffix + "/" + Name(type);
  const std::string n = std::to_string(a.size());
  c.text = "HloModule m\nENTRY e {\n  a = " + Name(type) + "[" + n + "] parameter(0)\n  b = " + Name(type) + "[" + n +
           "] parameter(1)\n  ROOT r = " + Name(result) + "[" + n + "] " + op.name + "(a, b)" + attributes + "\n}\n";
  c.inputs = {Operand(type, a), Operand(type, b)};
  c.ulps = UlpsFor(op, type);
  if (op.edges && (c.name.starts_with("power/") || c.name.starts_with("atan2/")))
    c.oracle_fault = "noise for denormals";
  c.relative = hlo::IsComplex(type) ? (type == ElementType::kC64 ? 4e-6 : 1e-14) : 0;
  cases.push_back(std::move(c));
}

void AddCompares(std::vector<Case>& cases) {
  for (const char* direction : {"EQ", "NE", "LT", "LE", "GT", "GE"}) {
    const std::string attributes = std::string(", direction=") + direction;
    const std::string suffix = std::string("-") + direction;
    for (const ElementType type : kEvery) {
      AddBinary(cases, {"compare"}, type, attributes, suffix, ElementType::kPred);
    }
    for (const ElementType type : kFloats) {
      AddBinary(cases, {"compare"}, type, attributes + ", type=TOTALORDER", suffix + "-total", ElementType::kPred);
    }
  }
}

// select and clamp over all triples of a few values.
void AddTernary(std::vector<Case>& cases) {
  for (const ElementType type : kEvery) {
    std::vector<double> low, x, high;
    const std::vector<double> edges = EdgeValues(type);
    for (size_t i = 0; i < edges.size(); i += 2) {
      for (const double v : edges) {
        for (size_t k = 1; k < edges.size(); k += 2) {
          low.push_back(edges[i]);
          x.push_back(v);
          high.push_back(edges[k]);
        }
      }
    }
    const std::string shape = Name(type) + "[" + std::to_string(x.size()) + "]";
    Case c;
    c.name = "clamp/" + Name(type);
    c.text = "HloModule m\nENTRY e {\n  l = " + shape + " parameter(0)\n  x = " + shape +
             " parameter(1)\n  h = " + shape + " parameter(2)\n  ROOT r = " + shape + " clamp(l, x, h)\n}\n";
    c.inputs = {ArrayOf(type, low), ArrayOf(type, x), ArrayOf(type, high)};
    cases.push_back(std::move(c));
  }
  for (const ElementType type : kEvery) {
    const std::string shape = Name(type) + "[8]";
    Case c;
    c.name = "select/" + Name(type);
    c.text = "HloModule m\nENTRY e {\n  p = pred[8] parameter(0)\n  a = " + shape + " parameter(1)\n  b = " + shape +
             " parameter(2)\n  ROOT r = " + shape + " select(p, a, b)\n}\n";
    c.inputs = {ArrayOf(ElementType::kPred, {1, 0, 1, 0, 1, 1, 0, 0}), Operand(type, {0, 1, 0, 1, 1, 0, 1, 1}),
                Operand(type, {1, 0, 1, 1, 0, 0, 1, 0})};
    cases.push_back(std::move(c));
  }
}

void AddReducePrecision(std::vector<Case>& cases) {
  constexpr struct {
    int exponent, mantissa;
  } kFormats[] = {{8, 7}, {5, 10}, {8, 23}, {5, 2}, {4, 3}, {11, 52}, {2, 0}, {8, 0}};
  for (const auto& format : kFormats) {
    for (const ElementType type : kFloats) {
      std::vector<double> values = EdgeValues(type);
      for (const double v : RandomValues(type, -20, 20, 3, 60)) {
        values.push_back(v);
        values.push_back(std::exp(v * 3));
      }
      values.insert(values.end(), {65519, 65520, 6.1e-5, 5.9e-8, 1e-30, 3.39e38});
      const std::string shape = Name(type) + "[" + std::to_string(values.size()) + "]";
      const std::string suffix = std::to_string(format.exponent) + "-" + std::to_string(format.mantissa);
      Case c;
      c.name = "reduce-precision-" + suffix + "/" + Name(type);
      c.text = "HloModule m\nENTRY e {\n  x = " + shape + " parameter(0)\n  ROOT r = " + shape +
               " reduce-precision(x), exponent_bits=" + std::to_string(format.exponent) +
               ", mantissa_bits=" + std::to_string(format.mantissa) + "\n}\n";
      c.inputs = {ArrayOf(type, values)};
      cases.push_back(std::move(c));
    }
  }
}

void AddComplexParts(std::vector<Case>& cases) {
  for (const ElementType type : kEvery) {
    for (const char* op : {"real", "imag", "abs"}) AddUnary(cases, {op, 4}, type, hlo::RealOf(type));
    AddBinary(cases, {"complex"}, type, "", "", type == ElementType::kF64 ? ElementType::kC128 : ElementType::kC64);
  }
}

}  // namespace

void AddElementwiseCases(std::vector<Case>& cases) {
  const Op unary[] = {
      {"negate"},
      {"sign"},
      {"not"},
      {"count-leading-zeros"},
      {"popcnt"},
      {"ceil"},
      {"floor"},
      {"round-nearest-afz"},
      {"round-nearest-even"},
      {"copy"},
      {"exponential", 6},
      {"exponential-minus-one", 8},
      {"log", 6, 0, 100},
      {"log-plus-one", 8, -1, 50},
      {"logistic", 8},
      {"tanh", 12},
      {"sqrt", 2, 0, 100},
      {"rsqrt", 6, 0, 100},
      {"cbrt", 6, -100, 100},
      {"sine", 6},
      {"cosine", 6},
      {"tan", 12},
      {"erf", 12, -4, 4},
      {"sinh", 12, -4, 4},
      {"cosh", 12, -4, 4},
      {"asin", 16, -1, 1, true, true},
      {"acos", 16, -1, 1, true, true},
      {"asinh", 16, -8, 8, true, true},
      {"acosh", 16, 1, 10, true, true},
      {"atanh", 16, -1, 1, true, true},
  };
  for (const Op& op : unary) {
    for (const ElementType type : kEvery) {
      if (!op.real || !hlo::IsComplex(type)) AddUnary(cases, op, type, type);
    }
  }
  for (const ElementType type : kEvery) AddUnary(cases, {"is-finite"}, type, ElementType::kPred);
  const Op binary[] = {
      {"add"},
      {"subtract"},
      {"multiply", 0},
      {"divide", 1},
      {"remainder"},
      {"maximum"},
      {"minimum"},
      {"power", 24, -4, 4},
      {"atan2", 12},
      {"and"},
      {"or"},
      {"xor"},
      {"shift-left"},
      {"shift-right-arithmetic"},
      {"shift-right-logical"},
  };
  for (const Op& op : binary) {
    for (const ElementType type : kEvery) AddBinary(cases, op, type, "", "", type);
  }
  for (const ElementType type : kFloats) {
    AddBinary(cases, {"power", 24, 0.01, 30, false}, type, "", "-positive", type);
    AddBinary(cases, {"atan2", 12, -8, 8, false}, type, "", "-usual", type);
  }
  AddCompares(cases);
  AddTernary(cases);
  AddReducePrecision(cases);
  AddComplexParts(cases);
}

}  // namespace hlorun::conformance
