// Loops inside of a kernel, cut along what they do not mix: the same values as the evaluator's, and shares where there
// is something to share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/opencl/compiler.h"
#include "tests/driver/evaluator_results.h"

namespace hlorun {
namespace {

struct Program {
  std::string name,
      body;        // of a loop over (s32[], f32[64,1024], f32[64,1024]): i, x, y given; "next" wanted, of x
  int64_t groups;  // of the largest launch
};

constexpr const char* kRowAt = R"(
  zero = s32[] constant(0)
  rows = s32[] constant(64)
  row = s32[] remainder(i, rows)
  old = f32[1,1024] dynamic-slice(x, row, zero), dynamic_slice_sizes={1,1024}
  half = f32[] constant(0.5)
  halves = f32[1,1024] broadcast(half), dimensions={})";

std::vector<Program> Programs() {
  const std::string row = kRowAt;
  return {
      // A row at a time, by elementwise ops: along the columns.
      {"rows", row + R"(
  given = f32[1,1024] dynamic-slice(y, row, zero), dynamic_slice_sizes={1,1024}
  scaled = f32[1,1024] multiply(old, halves)
  new = f32[1,1024] add(scaled, given)
  next = f32[64,1024] dynamic-update-slice(x, new, row, zero))",
       16},
      // Where a condition holds: the array's part is read where it is written.
      {"rows_where", row + R"(
  thirty = s32[] constant(30)
  is_below = pred[] compare(row, thirty), direction=LT
  all = pred[64,1024] broadcast(is_below), dimensions={}
  scaled = f32[1,1024] multiply(old, halves)
  some = f32[64,1024] dynamic-update-slice(x, scaled, row, zero)
  next = f32[64,1024] select(all, some, x))",
       16},
      // The row before is read as well, still column by column; through a reshape and back.
      {"rows_before", row + R"(
  one = s32[] constant(1)
  above = s32[] add(row, one)
  before = f32[1,1024] dynamic-slice(x, above, zero), dynamic_slice_sizes={1,1024}
  flat = f32[1024] reshape(before)
  moved = f32[1024] cosine(flat)
  back = f32[1,1024] reshape(moved)
  scaled = f32[1,1024] multiply(old, halves)
  new = f32[1,1024] add(scaled, back)
  next = f32[64,1024] dynamic-update-slice(x, new, row, zero))",
       16},
      // A row waits in scratch memory for the next one, being too long for a private array.
      {"two_rows", row + R"(
  one = s32[] constant(1)
  above = s32[] add(row, one)
  before = f32[1,1024] dynamic-slice(x, above, zero), dynamic_slice_sizes={1,1024}
  scaled = f32[1,1024] multiply(old, halves)
  first = f32[1,1024] sine(scaled)
  middle = f32[64,1024] dynamic-update-slice(x, first, row, zero)
  second = f32[1,1024] add(first, before)
  next = f32[64,1024] dynamic-update-slice(middle, second, above, zero))",
       16},
      // Neighbours meet: no dimension is left alone.
      {"reversed", row + R"(
  turned = f32[1,1024] reverse(old), dimensions={1}
  scaled = f32[1,1024] multiply(old, halves)
  new = f32[1,1024] add(scaled, turned)
  next = f32[64,1024] dynamic-update-slice(x, new, row, zero))",
       1},
      // So they do in a sum of the row.
      {"summed", row + R"(
  none = f32[] constant(0)
  sum = f32[1] reduce(old, none), dimensions={1}, to_apply=add
  little = f32[] constant(0.0005)
  littles = f32[1] broadcast(little), dimensions={}
  part = f32[1] multiply(sum, littles)
  sums = f32[1,1024] broadcast(part), dimensions={0}
  scaled = f32[1,1024] multiply(old, halves)
  new = f32[1,1024] subtract(scaled, sums)
  next = f32[64,1024] dynamic-update-slice(x, new, row, zero))",
       1},
      // One row changes a part of the columns only.
      {"part", row + R"(
  some = f32[1,512] dynamic-slice(x, row, zero), dynamic_slice_sizes={1,512}
  new = f32[1,512] sine(some)
  next = f32[64,1024] dynamic-update-slice(x, new, row, zero))",
       1},
  };
}

std::string TextOf(const Program& program) {
  return R"(HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
body {
  t = (s32[], f32[64,1024], f32[64,1024]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[64,1024] get-tuple-element(t), index=1
  y = f32[64,1024] get-tuple-element(t), index=2)" +
         program.body + R"(
  kept = f32[64,1024] copy(y)
  step = s32[] constant(1)
  j = s32[] add(i, step)
  ROOT r = (s32[], f32[64,1024], f32[64,1024]) tuple(j, next, kept)
}
condition {
  t = (s32[], f32[64,1024], f32[64,1024]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(200)
  ROOT go = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[64,1024] parameter(0)
  y = f32[64,1024] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[64,1024], f32[64,1024]) tuple(zero, x, y)
  w = (s32[], f32[64,1024], f32[64,1024]) while(t), condition=condition, body=body
  ROOT r = f32[64,1024] get-tuple-element(w), index=1
})";
}

class RegionCutTest : public ::testing::TestWithParam<Program> {};

void PrintTo(const Program& program, std::ostream* out) { *out << program.name; }

TEST_P(RegionCutTest, EqualsTheEvaluator) { ExpectEvaluatorsResult(TextOf(GetParam())); }

TEST_P(RegionCutTest, IsSharedWhereNothingMeets) {
  DeviceSpec device;
  device.compute_units = 16;
  const opencl::Plan plan = opencl::CompileModule(*passes::Parse(TextOf(GetParam())), device, {}).plan;
  int64_t groups = 0;
  for (const opencl::Thunk& thunk : plan.entry.thunks) {
    const auto* launch = std::get_if<opencl::LaunchThunk>(&thunk.work);
    // The last: before it the array that it updates is copied, which any number of groups may do.
    if (launch != nullptr && thunk.label.starts_with("region")) groups = launch->grid.groups[0];
  }
  EXPECT_EQ(groups, GetParam().groups) << plan.ToString();
}

INSTANTIATE_TEST_SUITE_P(All, RegionCutTest, testing::ValuesIn(Programs()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace hlorun
