// Reductions over arrays side by side: which become operations of these arrays, with the same values.
#include "passes/expand/unstack_reductions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

constexpr const char* kReducers = R"(HloModule m
add { a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = f32[] add(a, b) }
largest { a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT c = f32[] maximum(a, b) }
difference { a = f32[] parameter(0)
             b = f32[] parameter(1)
             ROOT c = f32[] subtract(a, b) }
)";

// How many reductions are left; the values stay.
int64_t Left(const std::string& body) {
  const std::string text = fmt::format("{}ENTRY e {{{}}}\n", kReducers, body);
  UnstackReductions pass;
  RunAndCompare(text, pass, kRounding);
  return Count(*RunPass(text, pass), hlo::Opcode::kReduce);
}

TEST(UnstackReductions, SumsOfShiftedImages) {
  EXPECT_EQ(Left(R"(
  x = f32[2,8,9,12] parameter(0)
  w = f32[2,6,7,3,4] parameter(1)
  start = f32[] parameter(2)
  a = f32[2,6,7,12] slice(x), slice={[0:2], [0:6], [0:7], [0:12]}
  b = f32[2,6,7,12] slice(x), slice={[0:2], [1:7], [1:8], [0:12]}
  c = f32[2,6,7,12] slice(x), slice={[0:2], [2:8], [2:9], [0:12]}
  ar = f32[2,6,7,1,12] reshape(a)
  br = f32[2,6,7,1,12] reshape(b)
  cr = f32[2,6,7,1,12] reshape(c)
  s = f32[2,6,7,3,12] concatenate(ar, br, cr), dimensions={3}
  sr = f32[2,6,7,3,4,3] reshape(s)
  wb = f32[2,6,7,3,4,3] broadcast(w), dimensions={0,1,2,3,4}
  m = f32[2,6,7,3,4,3] multiply(wb, sr)
  ROOT r = f32[2,6,7,4,3] reduce(m, start), dimensions={3}, to_apply=add)"),
            0);
}

// Along the last dimension and the first, behind a transpose, one array read twice.
TEST(UnstackReductions, AlongAnyDimension) {
  EXPECT_EQ(Left(R"(
  x = f32[40,1] parameter(0)
  y = f32[40,1] parameter(1)
  start = f32[] constant(-inf)
  s = f32[40,3] concatenate(x, y, x), dimensions={1}
  n = f32[40,3] sine(s)
  ROOT r = f32[40] reduce(n, start), dimensions={1}, to_apply=largest)"),
            0);
  EXPECT_EQ(Left(R"(
  x = f32[1,40,7] parameter(0)
  y = f32[1,40,7] parameter(1)
  u = f32[7] parameter(2)
  start = f32[] constant(0)
  s = f32[2,40,7] concatenate(x, y), dimensions={0}
  t = f32[40,2,7] transpose(s), dimensions={1,0,2}
  q = f32[40,2,7] multiply(t, t)
  ub = f32[40,2,7] broadcast(u), dimensions={2}
  p = f32[40,2,7] add(q, ub)
  ROOT r = f32[40,7] reduce(p, start), dimensions={1}, to_apply=add)"),
            0);
}

TEST(UnstackReductions, OthersStay) {
  // Parts of several elements; what lies between is read by others; another dimension; a reducer that is no such op.
  constexpr const char* kParts = R"(
  x = f32[40,1] parameter(0)
  y = f32[40,{0}] parameter(1)
  start = f32[] constant(0)
  s = f32[40,{1}] concatenate(x, y), dimensions={{1}}
  n = f32[40,{1}] sine(s)
  r = f32[{2}] reduce(n, start), dimensions={{{3}}}, to_apply={4}
  ROOT t = ({5}) tuple({6}))";
  const auto left = [&](int64_t of_second, const char* size, int dimension, const char* reducer, bool reads_between) {
    const std::string results =
        reads_between ? fmt::format("f32[{}], f32[40,{}]", size, 1 + of_second) : fmt::format("f32[{}]", size);
    return Left(
        fmt::format(kParts, of_second, 1 + of_second, size, dimension, reducer, results, reads_between ? "r, n" : "r"));
  };
  EXPECT_EQ(left(1, "40", 1, "add", false), 0);
  EXPECT_EQ(left(2, "40", 1, "add", false), 1);
  EXPECT_EQ(left(1, "40", 1, "add", true), 1);
  EXPECT_EQ(left(1, "2", 0, "add", false), 1);
  EXPECT_EQ(left(1, "40", 1, "difference", false), 1);
}

// A chain whose ops each read the one before twice is walked once, and made once for each array.
TEST(UnstackReductions, SharedOperandsTakeNoTime) {
  const auto squares = [](int count) {
    std::string body = R"(
  x = f32[40,1] parameter(0)
  y = f32[40,1] parameter(1)
  start = f32[] constant(0)
  s = f32[40,2] concatenate(x, y), dimensions={1}
  m0 = f32[40,2] cosine(s)
)";
    for (int i = 1; i < count; ++i) body += fmt::format("  m{0} = f32[40,2] multiply(m{1}, m{1})\n", i, i - 1);
    return body + fmt::format("  ROOT r = f32[40] reduce(m{}, start), dimensions={{1}}, to_apply=add\n", count - 1);
  };
  EXPECT_EQ(Left(squares(200)), 1);
  EXPECT_EQ(Left(squares(16)), 0);
  UnstackReductions pass;
  EXPECT_LE(RunPass(fmt::format("{}ENTRY e {{{}}}\n", kReducers, squares(16)), pass)->entry()->instruction_count(), 80);
}

}  // namespace
}  // namespace hlorun::passes
