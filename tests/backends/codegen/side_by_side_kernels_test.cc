// Kernels side by side on the device: the evaluator's values, beyond no array's end, one body for equal kernels.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/opencl/codegen/joined_launch.h"
#include "hlo/text/parser.h"
#include "passes/fusion/hero.h"
#include "tests/backends/codegen/kernel_runner.h"

namespace hlorun::opencl {
namespace {

using testing::HasSubstr;

struct Part {
  std::string shape, op;  // of p0, p1 ... of that shape, named by $0, $1
  int64_t operands = 1;
  std::string result = {};  // where it is not the shape
};

// An entry of one fusion that runs `parts` side by side, each on parameters of its own; all read `shared` as well,
// where an op names it.
std::string SideBySide(const std::vector<Part>& parts) {
  std::string body, entry, parameters = "shared", results, shapes;
  body = "shared = f32[] parameter(0)\n";
  entry = "shared = f32[] parameter(0)\n";
  int64_t number = 1;
  for (size_t i = 0; i < parts.size(); ++i) {
    std::string op = parts[i].op;
    for (int64_t p = 0; p < parts[i].operands; ++p, ++number) {
      const std::string line = fmt::format("p{0} = {1} parameter({0})\n", number, parts[i].shape);
      body += line;
      entry += line;
      parameters += fmt::format(", p{}", number);
      const std::string name = fmt::format("${}", p);
      for (size_t at = op.find(name); at != std::string::npos; at = op.find(name))
        op.replace(at, name.size(), fmt::format("p{}", number));
    }
    const std::string shape = parts[i].result.empty() ? parts[i].shape : parts[i].result;
    body += fmt::format("r{} = {} {}\n", i, shape, op);
    results += fmt::format("{}r{}", i == 0 ? "" : ", ", i);
    shapes += fmt::format("{}{}", i == 0 ? "" : ", ", shape);
  }
  return fmt::format(R"(HloModule m
add {{ a = f32[] parameter(0)
       b = f32[] parameter(1)
       ROOT c = f32[] add(a, b) }}
all {{ {}
  ROOT r = ({}) tuple({}) }}
ENTRY e {{ {}
  ROOT f = ({}) fusion({}), kind=kCustom, calls=all, backend_config={} }})",
                     body, shapes, results, entry, shapes, parameters, passes::kSideBySideConfig);
}

std::vector<Part> Elementwise() {
  return {{"f32[300]", "add($0, $1)", 2},
          {"f32[7]", "add($0, $1)", 2},
          {"f32[300]", "add($0, $1)", 2},
          {"f32[40,65]", "add($0, $1)", 2},
          {"s32[33]", "negate($0)"},
          {"bf16[500]", "exponential($0)"},
          {"f32[20,30]", "transpose($0), dimensions={1,0}", 1, "f32[30,20]"},
          {"f32[1]", "sine($0)"},
          {"f32[300]", "add($0, $1)", 2},
          {"f32[5000]", "multiply($0, $0)"},
          {"c64[60]", "multiply($0, $1)", 2},
          {"pred[50]", "not($0)"},
          {"f32[90,4]", "reduce($0, shared), dimensions={1}, to_apply=add", 1, "f32[90]"}};
}

void RunAll(const DeviceSpec& device, bool in_place) {
  KernelRunner runner(device);
  runner.Add("elementwise", SideBySide(Elementwise()));
  runner.Add("two", SideBySide({{"f32[64]", "sine($0)"}, {"f32[100]", "sine($0)"}}));
  runner.Add("one_repeated", SideBySide(std::vector<Part>(20, Part{"f32[130]", "subtract($0, $1)", 2})));
  runner.RunAll(in_place);
}

TEST(SideBySideKernels, EqualTheEvaluator) {
  for (const DeviceSpec& device : {CpuSpec(), GpuSpec()}) RunAll(device, /*in_place=*/false);
}

TEST(SideBySideKernels, EqualTheEvaluatorInPlace) {
  for (const DeviceSpec& device : {CpuSpec(), GpuSpec()}) RunAll(device, /*in_place=*/true);
}

std::vector<EmittedLaunch> LaunchesOf(const std::string& text, const AliasPattern& aliases, const DeviceSpec& device) {
  const auto module = hlo::ParseModule(text);
  const CompileOptions options;
  return EmitInstruction(*module->entry()->root(), aliases, {device, options});
}

size_t Times(const std::string& text, const std::string& what) {
  size_t times = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++times;
  return times;
}

TEST(SideBySideKernels, EqualKernelsAreOneBody) {
  const std::string text = SideBySide(std::vector<Part>(40, Part{"f32[1000]", "subtract($0, $1)", 2}));
  const auto launches = LaunchesOf(text, AliasPattern(40, -1), GpuSpec());
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(Times(launches[0].source, "switch ("), 1u);
  EXPECT_EQ(launches[0].arguments.size(), 120u);
  EXPECT_EQ(launches[0].grid.groups[0] % 40, 0);
}

TEST(SideBySideKernels, WhatIsUpdatedInPlaceIsOneArgument) {
  const std::string text = SideBySide(std::vector<Part>(4, Part{"f32[1000]", "subtract($0, $1)", 2}));
  const auto launches = LaunchesOf(text, {1, 3, 5, 7}, GpuSpec());
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(launches[0].arguments.size(), 8u);
  for (const ArgumentRef& argument : launches[0].arguments)
    EXPECT_EQ(argument.written, argument.kind == ArgumentRef::Kind::kResult);
}

// A sum over long rows has lanes that meet at barriers, in arrays of their group.
TEST(SideBySideKernels, GroupsMeetWithinTheirPart) {
  const Part rows{"f32[8,4096]", "reduce($0, shared), dimensions={1}, to_apply=add", 1, "f32[8]"};
  const Part all{"f32[90,40]", "reduce($0, shared), dimensions={0,1}, to_apply=add", 1, "f32[]"};
  const Part columns{"f32[300,64]", "reduce($0, shared), dimensions={0}, to_apply=add", 1, "f32[64]"};
  const Part sine{"f32[100]", "sine($0)"};
  const Part turned{"f32[70,90]", "transpose($0), dimensions={1,0}", 1, "f32[90,70]"};
  KernelRunner runner(GpuSpec());
  runner.Add("with_rows", SideBySide({rows, sine, rows, sine}));
  runner.Add("alike", SideBySide(std::vector<Part>(12, all)));
  runner.Add("unlike", SideBySide({all, columns, sine, rows, turned, all, columns, turned, sine}));
  runner.RunAll();
  const auto launches = LaunchesOf(SideBySide(std::vector<Part>(12, all)), AliasPattern(12, -1), GpuSpec());
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_THAT(launches[0].source, HasSubstr("barrier("));
  EXPECT_EQ(Times(launches[0].source, "__local char memory["), 1u);
}

}  // namespace
}  // namespace hlorun::opencl
