#include "tests/conformance/packing.h"

#include <fmt/format.h>

#include <cmath>

#include "hlo/number_types.h"
#include "hlo/text/parser.h"

namespace hlorun::conformance {
namespace {

// A case's computations, copied into `module`; returns its entry's copy.
hlo::Computation* Adopt(hlo::Module& module, const Case& c, size_t index) {
  const auto parsed = hlo::ParseModule(c.text, {.file_name = c.name});
  hlo::ComputationMap copies;
  for (const hlo::Computation* computation : parsed->PostOrder()) {
    hlo::Computation* copy = module.AddComputation(fmt::format("case{}.{}", index, computation->name()));
    hlo::InstructionMap images;
    copy->set_root(computation->CloneInto(copy, images, copies));
    copies[computation] = copy;
  }
  return copies.at(parsed->entry());
}

// Bits of the significand of a floating type, the hidden one excluded.
int MantissaBits(hlo::ElementType type) {
  switch (type) {
    case hlo::ElementType::kF64: return 52;
    case hlo::ElementType::kF32: return 23;
    case hlo::ElementType::kF16: return 10;
    case hlo::ElementType::kBF16: return 7;
    default: return hlo::NarrowFormatOf(type).mantissa_bits;
  }
}

double Magnitude(const hlo::Literal& literal) {
  double largest = 0;
  for (int64_t i = 0; i < literal.ElementCount(); ++i) {
    const std::complex<double> value = literal.GetComplex(i);
    for (const double part : {value.real(), value.imag()}) {
      if (std::isfinite(part)) largest = std::max(largest, std::fabs(part));
    }
  }
  return largest;
}

bool IsNear(const Case& c, double actual, double expected, int mantissa_bits, double magnitude) {
  if (std::isnan(expected)) return std::isnan(actual);
  if (actual == expected) return std::signbit(actual) == std::signbit(expected) || c.sums;
  if (!std::isfinite(actual) || !std::isfinite(expected)) return false;
  const double ulp = expected == 0 ? 0 : std::ldexp(1.0, std::ilogb(expected) - mantissa_bits);
  return std::fabs(actual - expected) <= std::max(c.ulps * ulp, c.relative * magnitude);
}

}  // namespace

std::unique_ptr<hlo::Module> Packed(std::span<const Case> cases) {
  auto module = std::make_unique<hlo::Module>("conformance");
  std::vector<hlo::Computation*> entries;
  for (size_t i = 0; i < cases.size(); ++i) entries.push_back(Adopt(*module, cases[i], i));
  hlo::Computation* main = module->AddComputation("main");
  std::vector<hlo::Instruction*> results;
  std::vector<hlo::Shape> shapes;
  int64_t number = 0;
  for (hlo::Computation* entry : entries) {
    std::vector<hlo::Instruction*> arguments;
    for (const hlo::Instruction* parameter : entry->parameters()) {
      arguments.push_back(main->AddParameter(number, parameter->shape(), fmt::format("p{}", number)));
      ++number;
    }
    results.push_back(
        main->Add(hlo::Opcode::kCall, entry->root()->shape(), std::move(arguments), hlo::attr::Call{}, {entry}));
    shapes.push_back(entry->root()->shape());
  }
  main->set_root(main->Add(hlo::Opcode::kTuple, hlo::Shape::Tuple(std::move(shapes)), std::move(results)));
  module->set_entry(main);
  return module;
}

std::vector<hlo::Literal> PackedInputs(std::span<const Case> cases) {
  std::vector<hlo::Literal> inputs;
  for (const Case& c : cases) inputs.insert(inputs.end(), c.inputs.begin(), c.inputs.end());
  return inputs;
}

std::string Difference(const Case& c, const hlo::Literal& actual, const hlo::Literal& expected) {
  if (!actual.shape().SameAs(expected.shape())) {
    return fmt::format("shape {}, expected {}", actual.shape().ToString(false), expected.shape().ToString(false));
  }
  const hlo::ElementType real = hlo::RealOf(expected.element_type());
  const bool floating = hlo::IsFloating(real);
  const int mantissa_bits = floating ? MantissaBits(real) : 0;
  const double magnitude = floating ? Magnitude(expected) : 0;
  const int64_t count = expected.ElementCount();
  std::string first;
  int64_t different = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!floating) {
      if (actual.GetInt(i) == expected.GetInt(i)) continue;
      if (different++ == 0) first = fmt::format("[{}]: {}, expected {}", i, actual.GetInt(i), expected.GetInt(i));
      continue;
    }
    const std::complex<double> a = actual.GetComplex(i);
    const std::complex<double> e = expected.GetComplex(i);
    if (IsNear(c, a.real(), e.real(), mantissa_bits, magnitude) &&
        IsNear(c, a.imag(), e.imag(), mantissa_bits, magnitude)) {
      continue;
    }
    if (different++ == 0)
      first = fmt::format("[{}]: {} {:+}i, expected {} {:+}i", i, a.real(), a.imag(), e.real(), e.imag());
  }
  return different < 2 ? first : fmt::format("{} ({} of {} differ)", first, different, count);
}

}  // namespace hlorun::conformance
