// Every elementwise op of every type, one fusion with many results a type, against the evaluator.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hlo/element_type.h"
#include "tests/backends/codegen/kernel_runner.h"

namespace hlorun::opencl {
namespace {

using hlo::ElementType;

constexpr int kLength = 40;  // two and a half vectors

// A fusion over parameters of the given types whose results are `ops`: {result type, "add(p0, p1)"}.
std::string Fusion(const std::vector<std::string>& parameters,
                   const std::vector<std::pair<std::string, std::string>>& ops) {
  std::string inner, outer, arguments, shapes, results;
  for (size_t i = 0; i < parameters.size(); ++i) {
    inner += fmt::format("  p{} = {}[{}] parameter({})\n", i, parameters[i], kLength, i);
    outer += fmt::format("  a{} = {}[{}] parameter({})\n", i, parameters[i], kLength, i);
    arguments += fmt::format("{}a{}", i == 0 ? "" : ", ", i);
  }
  for (size_t i = 0; i < ops.size(); ++i) {
    inner += fmt::format("  r{} = {}[{}] {}\n", i, ops[i].first, kLength, ops[i].second);
    shapes += fmt::format("{}{}[{}]", i == 0 ? "" : ", ", ops[i].first, kLength);
    results += fmt::format("{}r{}", i == 0 ? "" : ", ", i);
  }
  return fmt::format(
      "f {{\n{}  ROOT t = ({}) tuple({})\n}}\nENTRY e {{\n{}  ROOT r = ({}) fusion({}), kind=kLoop, calls=f\n}}\n",
      inner, shapes, results, outer, shapes, arguments);
}

void RunBoth(const std::vector<std::pair<std::string, std::string>>& cases) {
  for (const bool gpu : {false, true}) {
    SCOPED_TRACE(gpu ? "gpu" : "cpu");
    KernelRunner runner(gpu ? GpuSpec() : CpuSpec());
    for (const auto& [name, text] : cases) runner.Add(name, text);
    runner.RunAll();
  }
}

std::string OpsOf(const std::string& type, const std::vector<const char*>& unary,
                  const std::vector<const char*>& binary) {
  std::vector<std::pair<std::string, std::string>> ops;
  for (const char* op : unary) ops.emplace_back(type, fmt::format("{}(p0)", op));
  for (const char* op : binary) ops.emplace_back(type, fmt::format("{}(p0, p1)", op));
  for (const char* direction : {"EQ", "NE", "LT", "LE", "GT", "GE"})
    ops.emplace_back("pred", fmt::format("compare(p0, p1), direction={}", direction));
  ops.emplace_back(type, "select(p2, p0, p1)");
  return Fusion({type, type, "pred"}, ops);
}

TEST(ElementKernels, Floats) {
  std::vector<std::pair<std::string, std::string>> cases;
  for (const char* type : {"f32", "f64", "bf16", "f16"}) {
    cases.emplace_back(
        type, OpsOf(type,
                    {"abs",
                     "negate",
                     "sign",
                     "floor",
                     "ceil",
                     "round-nearest-afz",
                     "round-nearest-even",
                     "exponential",
                     "exponential-minus-one",
                     "log",
                     "log-plus-one",
                     "logistic",
                     "tanh",
                     "sine",
                     "cosine",
                     "tan",
                     "sqrt",
                     "rsqrt",
                     "cbrt",
                     "erf",
                     "sinh",
                     "cosh",
                     "asinh",
                     "acosh",
                     "atanh",
                     "asin",
                     "acos",
                     "copy"},
                    {"add", "subtract", "multiply", "divide", "maximum", "minimum", "remainder", "power", "atan2"}));
    cases.emplace_back(std::string(type) + "_more",
                       Fusion({type, type}, {{"pred", "is-finite(p0)"},
                                             {"pred", "compare(p0, p1), direction=LT, type=TOTALORDER"},
                                             {type, "clamp(p0, p1, p0)"},
                                             {type, "reduce-precision(p0), exponent_bits=5, mantissa_bits=4"}}));
  }
  RunBoth(cases);
}

TEST(ElementKernels, Integers) {
  std::vector<std::pair<std::string, std::string>> cases;
  const std::vector<const char*> binary = {"add",
                                           "subtract",
                                           "multiply",
                                           "divide",
                                           "remainder",
                                           "maximum",
                                           "minimum",
                                           "power",
                                           "and",
                                           "or",
                                           "xor",
                                           "shift-left",
                                           "shift-right-logical",
                                           "shift-right-arithmetic"};
  for (const char* type : {"s8", "s16", "s32", "s64"}) {
    cases.emplace_back(type, OpsOf(type, {"abs", "negate", "sign", "not", "popcnt", "count-leading-zeros"}, binary));
  }
  for (const char* type : {"u8", "u16", "u32", "u64"})
    cases.emplace_back(type, OpsOf(type, {"sign", "not", "popcnt", "count-leading-zeros"}, binary));
  cases.emplace_back("pred", OpsOf("pred", {"not"}, {"and", "or", "xor", "maximum", "minimum"}));
  RunBoth(cases);
}

TEST(ElementKernels, Complex) {
  std::vector<std::pair<std::string, std::string>> cases;
  for (const auto& [type, part] : {std::pair{"c64", "f32"}, std::pair{"c128", "f64"}}) {
    std::vector<std::pair<std::string, std::string>> ops;
    for (const char* op : {"negate", "exponential", "log", "sqrt", "rsqrt", "sine", "cosine", "tanh", "tan", "sign",
                           "logistic", "log-plus-one", "exponential-minus-one", "sinh", "cosh"}) {
      ops.emplace_back(type, fmt::format("{}(p0)", op));
    }
    for (const char* op : {"add", "subtract", "multiply", "divide", "power"})
      ops.emplace_back(type, fmt::format("{}(p0, p1)", op));
    for (const char* op : {"abs", "real", "imag"}) ops.emplace_back(part, fmt::format("{}(p0)", op));
    ops.emplace_back("pred", "compare(p0, p1), direction=EQ");
    ops.emplace_back("pred", "compare(p0, p0), direction=NE");
    ops.emplace_back(type, "select(p2, p0, p1)");
    ops.emplace_back(type, "complex(p3, p3)");
    cases.emplace_back(type, Fusion({type, type, "pred", part}, ops));
  }
  RunBoth(cases);
}

TEST(ElementKernels, Converts) {
  const std::vector<const char*> types = {"pred", "s4",  "s8",  "s16",  "s32", "s64", "u4",     "u8",      "u16",
                                          "u32",  "u64", "f16", "bf16", "f32", "f64", "f8e5m2", "f8e4m3fn"};
  std::vector<std::pair<std::string, std::string>> cases;
  for (const char* from : types) {
    std::vector<std::pair<std::string, std::string>> ops;
    for (const char* to : types) {
      if (std::string(from) != to) ops.emplace_back(to, "convert(p0)");
    }
    cases.emplace_back(fmt::format("from_{}", from), Fusion({from}, ops));
  }
  for (const char* narrow : {"f8e4m3b11fnuz", "f8e5m2fnuz", "f8e4m3fnuz", "f8e4m3", "f8e3m4", "f4e2m1fn"}) {
    cases.emplace_back(narrow, Fusion({narrow, "f32"}, {{"f32", "convert(p0)"}, {narrow, "convert(p1)"}}));
  }
  cases.emplace_back("from_c64", Fusion({"c64"}, {{"c128", "convert(p0)"}}));
  cases.emplace_back("to_c64",
                     Fusion({"s16", "f64"}, {{"c64", "convert(p0)"}, {"c64", "convert(p1)"}, {"c128", "convert(p0)"}}));
  RunBoth(cases);
}

TEST(ElementKernels, NarrowArithmetic) {
  std::vector<std::pair<std::string, std::string>> cases;
  for (const char* type : {"s4", "u4", "s2"}) {
    cases.emplace_back(type, Fusion({type, type}, {{type, "add(p0, p1)"},
                                                   {type, "multiply(p0, p1)"},
                                                   {type, "subtract(p0, p1)"},
                                                   {type, "maximum(p0, p1)"},
                                                   {type, "shift-left(p0, p1)"},
                                                   {type, "popcnt(p0)"},
                                                   {type, "count-leading-zeros(p0)"}}));
  }
  for (const char* type : {"f8e5m2", "f8e4m3fn", "f8e4m3b11fnuz"}) {
    cases.emplace_back(
        type, Fusion({type, type},
                     {{type, "add(p0, p1)"}, {type, "multiply(p0, p1)"}, {"pred", "compare(p0, p1), direction=LT"}}));
  }
  RunBoth(cases);
}

}  // namespace
}  // namespace hlorun::opencl
