// Long sums in loops inside of a kernel, each of one number: by vectors, and the evaluator's values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/opencl/compiler.h"
#include "tests/driver/evaluator_results.h"

namespace hlorun {
namespace {

struct Program {
  std::string name;
  std::string body;  // of x: f32[8,200] and row: s32[], y: f32[200]; "number" wanted: f32[]
  bool by_vectors = true;
};

std::vector<Program> Programs() {
  return {
      {"sum", R"(
  number = f32[] reduce(mine, zero), dimensions={0}, to_apply=add)"},
      {"of_squares", R"(
  squares = f32[200] multiply(mine, mine)
  sum = f32[] reduce(squares, zero), dimensions={0}, to_apply=add
  number = f32[] sqrt(sum))"},
      // The second one needs the first.
      {"variance", R"(
  sum = f32[] reduce(mine, zero), dimensions={0}, to_apply=add
  part = f32[] constant(0.005)
  mean = f32[] multiply(sum, part)
  means = f32[200] broadcast(mean), dimensions={}
  apart = f32[200] subtract(mine, means)
  squares = f32[200] multiply(apart, apart)
  number = f32[] reduce(squares, zero), dimensions={0}, to_apply=add)"},
      {"largest", R"(
  low = f32[] constant(-inf)
  number = f32[] reduce(mine, low), dimensions={0}, to_apply=max)"},
      {"from_a_start", R"(
  three = f32[] constant(3)
  number = f32[] reduce(mine, three), dimensions={0}, to_apply=add)"},
      {"product_of_vectors", R"(
  number = f32[] dot(mine, y), lhs_contracting_dims={0}, rhs_contracting_dims={0})"},
      {"of_matrices", R"(
  lying = f32[1,200] reshape(mine)
  standing = f32[200,1] reshape(y)
  d = f32[1,1] dot(lying, standing), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  number = f32[] reshape(d))"},
      {"whole_numbers", R"(
  numbers = s32[200] convert(mine)
  none = s32[] constant(0)
  sum = s32[] reduce(numbers, none), dimensions={0}, to_apply=add_numbers
  number = f32[] convert(sum))"},
      {"short", R"(
  few = f32[7] slice(mine), slice={[0:7]}
  number = f32[] reduce(few, zero), dimensions={0}, to_apply=add)",
       false},
      // What has no neutral element goes in order.
      {"in_order", R"(
  number = f32[] reduce(mine, zero), dimensions={0}, to_apply=half_of_both)",
       false},
  };
}

std::string TextOf(const Program& program) {
  return R"(HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] maximum(a, b) }
add_numbers { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT c = s32[] add(a, b) }
half_of_both {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  s = f32[] add(a, b)
  h = f32[] constant(0.5)
  ROOT c = f32[] multiply(s, h)
}
body {
  t = (s32[], f32[8,200], f32[200]) parameter(0)
  row = s32[] get-tuple-element(t), index=0
  x = f32[8,200] get-tuple-element(t), index=1
  y = f32[200] get-tuple-element(t), index=2
  first = s32[] constant(0)
  zero = f32[] constant(0)
  slice = f32[1,200] dynamic-slice(x, row, first), dynamic_slice_sizes={1,200}
  mine = f32[200] reshape(slice))" +
         program.body + R"(
  new = f32[1,1] reshape(number)
  next = f32[8,200] dynamic-update-slice(x, new, row, row)
  step = s32[] constant(1)
  after = s32[] add(row, step)
  ROOT r = (s32[], f32[8,200], f32[200]) tuple(after, next, y)
}
condition {
  t = (s32[], f32[8,200], f32[200]) parameter(0)
  row = s32[] get-tuple-element(t), index=0
  n = s32[] constant(8)
  ROOT go = pred[] compare(row, n), direction=LT
}
ENTRY e {
  x = f32[8,200] parameter(0)
  y = f32[200] parameter(1)
  first = s32[] constant(0)
  t = (s32[], f32[8,200], f32[200]) tuple(first, x, y)
  w = (s32[], f32[8,200], f32[200]) while(t), condition=condition, body=body
  ROOT r = f32[8,200] get-tuple-element(w), index=1
})";
}

class RegionSumsTest : public ::testing::TestWithParam<Program> {};

void PrintTo(const Program& program, std::ostream* out) { *out << program.name; }

TEST_P(RegionSumsTest, EqualsTheEvaluator) { ExpectEvaluatorsResult(TextOf(GetParam())); }

TEST_P(RegionSumsTest, GoesByVectors) {
  const opencl::Plan plan = opencl::CompileModule(*passes::Parse(TextOf(GetParam())), DeviceSpec{}, {}).plan;
  ASSERT_FALSE(plan.kernels.empty());
  EXPECT_EQ(plan.kernels.back().source.find("lanes") != std::string::npos, GetParam().by_vectors)
      << plan.kernels.back().source;
}

INSTANTIATE_TEST_SUITE_P(All, RegionSumsTest, testing::ValuesIn(Programs()),
                         [](const auto& test) { return test.param.name; });

// A step of conjugate gradients: the new sum takes the memory of the old one, which is read until the end, so it waits
// elsewhere and is copied there; a copy computes nothing.
TEST(RegionSums, ASumWaitsForTheReadersOfTheOneBefore) {
  ExpectEvaluatorsResult(R"(HloModule m
body {
  t = (s32[], f32[1,200], f32[1,200], f32[1,1]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  r = f32[1,200] get-tuple-element(t), index=1
  p = f32[1,200] get-tuple-element(t), index=2
  old = f32[1,1] get-tuple-element(t), index=3
  all = f32[1,1] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  share = f32[1,1] divide(old, all)
  share_number = f32[] reshape(share)
  shares = f32[1,200] broadcast(share_number), dimensions={}
  step = f32[1,200] multiply(shares, p)
  half = f32[] constant(0.5)
  halves = f32[1,200] broadcast(half), dimensions={}
  part = f32[1,200] multiply(step, halves)
  rest = f32[1,200] subtract(r, part)
  new = f32[1,1] dot(rest, rest), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ratio = f32[1,1] divide(new, old)
  ratio_number = f32[] reshape(ratio)
  ratios = f32[1,200] broadcast(ratio_number), dimensions={}
  turned = f32[1,200] multiply(ratios, p)
  next = f32[1,200] add(rest, turned)
  one = s32[] constant(1)
  after = s32[] add(i, one)
  ROOT result = (s32[], f32[1,200], f32[1,200], f32[1,1]) tuple(after, rest, next, new)
}
condition {
  t = (s32[], f32[1,200], f32[1,200], f32[1,1]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(3)
  ROOT go = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[1,200] parameter(0)
  y = f32[1,200] parameter(1)
  d = f32[1,1] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  first = s32[] constant(0)
  t = (s32[], f32[1,200], f32[1,200], f32[1,1]) tuple(first, x, y, d)
  ROOT w = (s32[], f32[1,200], f32[1,200], f32[1,1]) while(t), condition=condition, body=body
})");
}

}  // namespace
}  // namespace hlorun
