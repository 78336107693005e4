#include "tests/conformance/template_cases.h"

#include <random>
#include <sstream>

#include "hlo/text/parser.h"
#include "tests/conformance/case.h"

namespace hlorun::conformance {
namespace {

void ReplaceAll(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

std::string Reducer(const std::string& name, const std::string& op) {
  return name + " { a = $T[] parameter(0)\n  b = $T[] parameter(1)\n  ROOT c = $T[] " + op + "(a, b) }\n";
}

std::string Expanded(std::string text, const std::string& type) {
  constexpr struct {
    const char *hole, *name, *op;
  } kReducers[] = {
      {"$ADD", "add", "add"},  {"$MUL", "mul", "multiply"}, {"$MAX", "max", "maximum"}, {"$MIN", "min", "minimum"},
      {"$AND", "and_", "and"}, {"$OR", "or_", "or"},        {"$XOR", "xor_", "xor"},
  };
  for (const auto& reducer : kReducers) ReplaceAll(text, reducer.hole, Reducer(reducer.name, reducer.op));
  ReplaceAll(text, "$GE",
             "ge { a = $T[] parameter(0)\n  b = $T[] parameter(1)\n  ROOT c = pred[] compare(a, b), direction=GE }\n");
  ReplaceAll(text, "$LT",
             "lt { a = $T[] parameter(0)\n  b = $T[] parameter(1)\n  ROOT c = pred[] compare(a, b), direction=LT }\n");
  ReplaceAll(text, "$T", type);
  return "HloModule m\n" + text + "\n";
}

// Small whole numbers, so that sums and products are exact in every type.
hlo::Literal SmallIntegers(const hlo::Shape& shape, uint64_t seed) {
  std::mt19937_64 engine(seed * 7919 + 17);
  hlo::Literal literal(shape.WithoutLayout());
  for (int64_t i = 0; i < literal.ElementCount(); ++i) {
    const auto r = static_cast<int64_t>(engine() % 5);
    const bool is_signed = !hlo::IsUnsigned(shape.element_type()) && shape.element_type() != hlo::ElementType::kPred;
    literal.SetDouble(i, static_cast<double>(is_signed ? r - 2 : r % 2));
  }
  return literal;
}

hlo::Literal Given(const hlo::Shape& shape, const std::vector<double>& values) {
  hlo::Literal literal(shape.WithoutLayout());
  for (int64_t i = 0; i < literal.ElementCount(); ++i) {
    const double value = values[static_cast<size_t>(i) % values.size()];
    // Large integers go in as integers: a double would round them.
    if (hlo::IsInteger(shape.element_type())) {
      literal.SetInt(
          i, value >= 9.2e18 ? static_cast<int64_t>(static_cast<uint64_t>(value)) : static_cast<int64_t>(value));
    } else {
      literal.SetDouble(i, value);
    }
  }
  return literal;
}

void Add(std::vector<Case>& cases, const Template& t, const std::string& type) {
  Case c;
  c.name = t.name + "/" + type;
  c.text = Expanded(t.text, type);
  c.ulps = t.ulps;
  c.relative = t.relative;
  const auto has = [&c](const char* op) { return c.text.find(op) != std::string::npos; };
  c.sums = has(" dot(") || has(" convolution(") || has(" fft(");
  c.alone = has(" rng-get-and-update-state(") || has(" rng(");
  c.oracle_fault = t.oracle_fault;
  const auto module = hlo::ParseModule(c.text, {.file_name = c.name});
  for (const hlo::Instruction* parameter : module->entry()->parameters()) {
    const auto number = static_cast<int>(parameter->parameter_number());
    const std::vector<double>* values = nullptr;
    for (const auto& [given, list] : t.given) {
      if (given == number) values = &list;
    }
    c.inputs.push_back(values != nullptr ? Given(parameter->shape(), *values)
                                         : SmallIntegers(parameter->shape(), static_cast<uint64_t>(number)));
  }
  cases.push_back(std::move(c));
}

}  // namespace

void AddTemplateCases(std::vector<Case>& cases) {
  for (const auto& family :
       {MovementTemplates(), ReductionTemplates(), ProductTemplates(), IndexingTemplates(), NumericTemplates(),
        ControlTemplates(), StructureTemplates(), GridTemplates(), TypeTemplates(), MixedTemplates()}) {
    for (const Template& t : family) {
      std::istringstream types(t.types);
      std::string type;
      while (types >> type) Add(cases, t, type);
    }
  }
}

}  // namespace hlorun::conformance
