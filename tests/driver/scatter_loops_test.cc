// Loops that change an array at one index a trip, as `x.at[i].set(...)` does: one kernel each, and the evaluator's
// values.
#include <gtest/gtest.h>

#include "backends/opencl/compiler.h"
#include "tests/driver/evaluator_results.h"

namespace hlorun {
namespace {

struct Program {
  std::string name;
  std::string body;   // of i, x: f32[16,64], y: f32[8,64]; "next" wanted, of x
  int64_t first = 0;  // i of the first trip, of 20
};

constexpr const char* kWindow = "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=0";

std::vector<Program> Programs() {
  const std::string window = kWindow;
  const std::string row = R"(
  at = s32[1] reshape(i)
  seven = s32[] constant(7)
  from = s32[] and(i, seven)
  zero = s32[] constant(0)
  given = f32[1,64] dynamic-slice(y, from, zero), dynamic_slice_sizes={1,64}
  flat = f32[64] reshape(given))";
  return {
      {"set", row + R"(
  next = f32[16,64] scatter(x, at, flat), update_window_dims={0}, )" +
                  window + ", to_apply=second"},
      {"add", row + R"(
  next = f32[16,64] scatter(x, at, flat), update_window_dims={0}, )" +
                  window + ", to_apply=add"},
      // What lies outside changes nothing, on either side.
      {"add_from_before",
       row + R"(
  next = f32[16,64] scatter(x, at, flat), update_window_dims={0}, )" +
           window + ", to_apply=add",
       -5},
      // From the row itself, and from the one after it, which the next trip changes.
      {"of_neighbours", row + R"(
  one = s32[] constant(1)
  after = s32[] add(i, one)
  mine = f32[1,64] dynamic-slice(x, i, zero), dynamic_slice_sizes={1,64}
  its = f32[1,64] dynamic-slice(x, after, zero), dynamic_slice_sizes={1,64}
  both = f32[1,64] subtract(mine, its)
  new = f32[64] reshape(both)
  next = f32[16,64] scatter(x, at, new), update_window_dims={0}, )" +
                            window + ", to_apply=second"},
      // One number, twice in a row: what the second one reads is what the first one wrote.
      {"numbers", R"(
  three = s32[] constant(3)
  column = s32[] multiply(i, three)
  two = s32[1] reshape(i)
  other = s32[1] reshape(column)
  at = s32[2] concatenate(two, other), dimensions={0}
  zero = s32[] constant(0)
  corner = f32[1,1] dynamic-slice(y, zero, zero), dynamic_slice_sizes={1,1}
  number = f32[] reshape(corner)
  first = f32[16,64] scatter(x, at, number), update_window_dims={}, inserted_window_dims={0,1},
    scatter_dims_to_operand_dims={0,1}, index_vector_dim=0, to_apply=add
  next = f32[16,64] scatter(first, at, number), update_window_dims={}, inserted_window_dims={0,1},
    scatter_dims_to_operand_dims={0,1}, index_vector_dim=0, to_apply=multiply)"},
      // Two places at once, which change theirs.
      {"swap", R"(
  one = s32[] constant(1)
  after = s32[] add(i, one)
  here = s32[1,1] reshape(i)
  there = s32[1,1] reshape(after)
  at = s32[2,1] concatenate(here, there), dimensions={0}
  from = s32[2,1] concatenate(there, here), dimensions={0}
  rows = f32[2,64] gather(x, from), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
    index_vector_dim=1, slice_sizes={1,64}
  next = f32[16,64] scatter(x, at, rows), update_window_dims={1}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=second)"},
      // Several numbers, some in the same place, some outside.
      {"sums", R"(
  numbers = s32[2,3] iota(), iota_dimension=1
  trip = s32[2,3] broadcast(i), dimensions={}
  product = s32[2,3] multiply(numbers, trip)
  rows = s32[2,3,1] reshape(product)
  columns = s32[2,3,1] iota(), iota_dimension=0
  at = s32[2,3,2] concatenate(rows, columns), dimensions={2}
  given = f32[2,3] slice(y), slice={[0:2], [0:3]}
  next = f32[16,64] scatter(x, at, given), update_window_dims={}, inserted_window_dims={0,1},
    scatter_dims_to_operand_dims={0,1}, index_vector_dim=2, to_apply=add)"},
      // Only in trips that a condition holds in.
      {"set_where", row + R"(
  even = s32[] constant(2)
  rest = s32[] remainder(i, even)
  is_even = pred[] compare(rest, zero), direction=EQ
  all = pred[16,64] broadcast(is_even), dimensions={}
  set = f32[16,64] scatter(x, at, flat), update_window_dims={0}, )" +
                        window + R"(, to_apply=second
  next = f32[16,64] select(all, set, x))"},
  };
}

std::string TextOf(const Program& program) {
  return R"(HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
multiply { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] multiply(a, b) }
second { a = f32[] parameter(0)  ROOT b = f32[] parameter(1) }
body {
  t = (s32[], f32[16,64], f32[8,64]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[16,64] get-tuple-element(t), index=1
  y = f32[8,64] get-tuple-element(t), index=2)" +
         program.body + R"(
  step = s32[] constant(1)
  j = s32[] add(i, step)
  ROOT r = (s32[], f32[16,64], f32[8,64]) tuple(j, next, y)
}
condition {
  t = (s32[], f32[16,64], f32[8,64]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant()" +
         std::to_string(program.first + 20) +
         ")\n"
         R"(
  ROOT go = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[16,64] parameter(0)
  y = f32[8,64] parameter(1)
  first = s32[] constant()" +
         std::to_string(program.first) +
         ")\n"
         R"(
  t = (s32[], f32[16,64], f32[8,64]) tuple(first, x, y)
  w = (s32[], f32[16,64], f32[8,64]) while(t), condition=condition, body=body
  ROOT r = f32[16,64] get-tuple-element(w), index=1
})";
}

class ScatterLoopsTest : public ::testing::TestWithParam<Program> {};

void PrintTo(const Program& program, std::ostream* out) { *out << program.name; }

TEST_P(ScatterLoopsTest, EqualsTheEvaluator) { ExpectEvaluatorsResult(TextOf(GetParam())); }

TEST_P(ScatterLoopsTest, IsOneRegion) {
  const opencl::Plan plan = opencl::CompileModule(*passes::Parse(TextOf(GetParam())), DeviceSpec{}, {}).plan;
  ASSERT_FALSE(plan.entry.thunks.empty());
  for (const opencl::Thunk& thunk : plan.entry.thunks) {
    const bool is_copy =
        std::holds_alternative<opencl::CopyThunk>(thunk.work);  // of the parameter, which is the caller's
    EXPECT_TRUE(is_copy || thunk.label.starts_with("region")) << plan.ToString();
  }
}

INSTANTIATE_TEST_SUITE_P(All, ScatterLoopsTest, testing::ValuesIn(Programs()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace hlorun
