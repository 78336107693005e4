// Regions over rows of a few elements, points and rotations: the same values as the evaluator's, in vectors of rows
// that are taken apart and put together in registers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/opencl/compiler.h"
#include "tests/driver/evaluator_results.h"

namespace hlorun {
namespace {

using testing::HasSubstr;

struct Program {
  std::string name;
  std::vector<int64_t> outer;  // dimensions of the array of points, but for the last one
  int64_t parts;               // of a point
  std::string body;            // of a loop: x0, x1 ..., y0 ... are parts of x and y; "next" wanted, of x
  std::string shows;           // in the kernel's text
};

std::vector<Program> Programs() {
  const std::string cross = R"(
  a0 = $1 multiply(x1, y2)
  b0 = $1 multiply(x2, y1)
  c0 = $1 subtract(a0, b0)
  a1 = $1 multiply(x2, y0)
  b1 = $1 multiply(x0, y2)
  c1 = $1 subtract(a1, b1)
  a2 = $1 multiply(x0, y1)
  b2 = $1 multiply(x1, y0)
  c2 = $1 subtract(a2, b2)
  c = $ concatenate(c0, c1, c2), dimensions={$D}
  next = $ sine(c))";
  const std::string turned = R"(
  n3 = $1 negate(x3)
  c = $ concatenate(x1, n3, y0, x2), dimensions={$D}
  s = $ add(c, y)
  next = $ sine(s))";
  return {
      {"cross", {48}, 3, cross, "hl_store_in_turns3_"},
      {"cross_of_batches", {5, 9}, 3, cross, "hl_store_in_turns3_"},
      {"cross_of_an_odd_number", {37}, 3, cross, "hl_every3_"},
      {"cross_of_few", {3}, 3, cross, ""},
      {"quaternions", {32}, 4, turned, "hl_store_in_turns4_"},
      {"quaternions_of_batches", {3, 7}, 4, turned, "hl_store_in_turns4_"},
      // Long enough rows to stay loops, in which the vectors go along another dimension.
      {"rows_of_five",
       {32},
       5,
       R"(
  c = $ concatenate(x4, y0, x1, y3, x2), dimensions={$D}
  next = $ cosine(c))",
       ""},
      // Of each row some elements are none of the concatenation's.
      {"padded_concatenations",
       {16},
       3,
       R"(
  nothing = f32[] constant(0.25)
  two = f32[16,2] concatenate(x1, y0), dimensions={1}
  first = f32[16,3] pad(two, nothing), padding=0_0x1_0
  one = f32[16,1] concatenate(x2), dimensions={1}
  last = f32[16,3] pad(one, nothing), padding=0_0x2_0
  s = $ add(first, last)
  next = $ cosine(s))",
       ""},
      // The transposed rotation, nine numbers in two dimensions.
      {"rotations",
       {16, 3},
       3,
       R"(
  back = $ transpose(x), dimensions={0,2,1}
  c = $ concatenate(y1, x2, x0), dimensions={2}
  s = $ add(back, c)
  next = $ sine(s))",
       "hl_"},
  };
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

std::string TextOf(const Program& program) {
  std::string dims, ranges, slices;
  for (const int64_t n : program.outer) {
    dims += std::to_string(n) + ",";
    ranges += "[0:" + std::to_string(n) + "], ";
  }
  for (const char* of : {"x", "y"}) {
    for (int64_t i = 0; i < program.parts; ++i) {
      const std::string part = std::to_string(i), next = std::to_string(i + 1);
      slices += "\n  " + (of + part) + " = $1 slice(" + of + "), slice={" + ranges + "[" + part + ":" + next + "]}";
    }
  }
  std::string text = R"(HloModule m
body {
  t = (s32[], $, $) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = $ get-tuple-element(t), index=1
  y = $ get-tuple-element(t), index=2)" +
                     slices + program.body + R"(
  kept = $ copy(y)
  step = s32[] constant(1)
  j = s32[] add(i, step)
  ROOT r = (s32[], $, $) tuple(j, next, kept)
}
condition {
  t = (s32[], $, $) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(3)
  ROOT go = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = $ parameter(0)
  y = $ parameter(1)
  zero = s32[] constant(0)
  t = (s32[], $, $) tuple(zero, x, y)
  w = (s32[], $, $) while(t), condition=condition, body=body
  ROOT r = $ get-tuple-element(w), index=1
})";
  text = Replaced(text, "$D", std::to_string(program.outer.size()));
  text = Replaced(text, "$1", "f32[" + dims + "1]");
  return Replaced(text, "$", "f32[" + dims + std::to_string(program.parts) + "]");
}

class RegionRowsTest : public ::testing::TestWithParam<Program> {};

void PrintTo(const Program& program, std::ostream* out) { *out << program.name; }

TEST_P(RegionRowsTest, EqualsTheEvaluator) { ExpectEvaluatorsResult(TextOf(GetParam())); }

TEST_P(RegionRowsTest, AsksForNoElementAlone) {
  DeviceSpec device;
  device.vector_bytes = 64;
  std::string text;
  for (const opencl::Kernel& kernel :
       opencl::CompileModule(*passes::Parse(TextOf(GetParam())), device, {}).plan.kernels)
    text += kernel.source;
  EXPECT_THAT(text, HasSubstr(GetParam().shows));
  EXPECT_THAT(text, testing::Not(HasSubstr("hl_masked_gather")));
}

INSTANTIATE_TEST_SUITE_P(All, RegionRowsTest, testing::ValuesIn(Programs()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace hlorun
