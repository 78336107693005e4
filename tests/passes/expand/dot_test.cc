// Dots of every arrangement come to the kernels' form and keep their value.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "passes/expand/dot.h"
#include "passes/expand/dot_form.h"
#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

struct Case {
  const char* name;
  const char* text;
  int64_t transposes;  // that are left, dead ones included
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr Case kCases[] = {
    {"Plain", R"(x = f32[4,5] parameter(0)
                 y = f32[5,6] parameter(1)
                 ROOT r = f32[4,6] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0})",
     0},
    {"Gradient", R"(x = f32[2,4,5] parameter(0)
                    y = f32[2,4,6] parameter(1)
                    ROOT r = f32[5,6] dot(x, y), lhs_contracting_dims={0,1}, rhs_contracting_dims={0,1})",
     0},
    {"GradientInOtherOrder", R"(x = f32[2,4,5] parameter(0)
                    y = f32[2,4,6] parameter(1)
                    ROOT r = f32[5,6] dot(x, y), lhs_contracting_dims={1,0}, rhs_contracting_dims={1,0})",
     0},
    {"Heads", R"(x = f32[2,7,3,4] parameter(0)
                 y = f32[2,5,3,4] parameter(1)
                 ROOT r = f32[2,3,7,5] dot(x, y), lhs_batch_dims={0,2}, lhs_contracting_dims={3},
                   rhs_batch_dims={0,2}, rhs_contracting_dims={3})",
     2},
    {"HeadsOfOneImage", R"(x = f32[1,7,1,4] parameter(0)
                 y = f32[1,5,1,4] parameter(1)
                 ROOT r = f32[1,1,7,5] dot(x, y), lhs_batch_dims={0,2}, lhs_contracting_dims={3},
                   rhs_batch_dims={0,2}, rhs_contracting_dims={3})",
     0},
    {"ValuesThenTransposed", R"(v = f32[2,5,3,4] parameter(0)
                 a = f32[2,3,7,5] parameter(1)
                 d = f32[2,3,4,7] dot(v, a), lhs_batch_dims={0,2}, lhs_contracting_dims={1},
                   rhs_batch_dims={0,1}, rhs_contracting_dims={3}
                 ROOT r = f32[2,7,3,4] transpose(d), dimensions={0,3,1,2})",
     3},
    // The keys' heads and places, [2,3,4,7], are merged behind a transpose: one that keeps runs of 4 takes its place.
    {"KeysOfMergedHeads", R"(q = f32[6,5,4] parameter(0)
                 k = f32[2,7,3,4] parameter(1)
                 t = f32[2,3,4,7] transpose(k), dimensions={0,2,3,1}
                 m = f32[6,4,7] reshape(t)
                 ROOT r = f32[6,5,7] dot(q, m), lhs_batch_dims={0}, lhs_contracting_dims={2},
                   rhs_batch_dims={0}, rhs_contracting_dims={1})",
     2},
    // What is summed is merged of two dimensions of the left side alone: its transpose stays.
    {"MergedSums", R"(x = f32[2,7,3,4] parameter(0)
                 y = f32[12,5] parameter(1)
                 t = f32[2,3,7,4] transpose(x), dimensions={0,2,1,3}
                 u = f32[2,7,3,4] transpose(t), dimensions={0,2,1,3}
                 m = f32[14,12] reshape(u)
                 ROOT r = f32[14,5] dot(m, y), lhs_contracting_dims={1}, rhs_contracting_dims={0})",
     2},
    {"BothOfMergedHeads", R"(q = f32[2,5,3,4] parameter(0)
                 k = f32[7,2,3,4] parameter(1)
                 s = f32[2,3,5,4] transpose(q), dimensions={0,2,1,3}
                 t = f32[2,3,4,7] transpose(k), dimensions={1,2,3,0}
                 l = f32[6,5,4] reshape(s)
                 m = f32[6,4,7] reshape(t)
                 ROOT r = f32[6,5,7] dot(l, m), lhs_batch_dims={0}, lhs_contracting_dims={2},
                   rhs_batch_dims={0}, rhs_contracting_dims={1})",
     4},
    {"OfTransposes", R"(x = f32[5,4] parameter(0)
                 y = f32[6,5] parameter(1)
                 a = f32[4,5] transpose(x), dimensions={1,0}
                 b = f32[5,6] transpose(y), dimensions={1,0}
                 ROOT r = f32[4,6] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0})",
     2},
    {"Vectors", R"(x = f32[5] parameter(0)
                 y = f32[5] parameter(1)
                 ROOT r = f32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0})",
     0},
    {"MatrixByVector", R"(x = f32[3,5] parameter(0)
                 y = f32[5] parameter(1)
                 ROOT r = f32[3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0})",
     0},
    {"OuterProduct", R"(x = f32[3] parameter(0)
                 y = f32[5] parameter(1)
                 ROOT r = f32[3,5] dot(x, y), lhs_contracting_dims={}, rhs_contracting_dims={})",
     0},
    {"BatchLast", R"(x = f32[4,5,3] parameter(0)
                 y = f32[5,6,3] parameter(1)
                 ROOT r = f32[3,4,6] dot(x, y), lhs_batch_dims={2}, lhs_contracting_dims={1}, rhs_batch_dims={2},
                   rhs_contracting_dims={0})",
     2},
    {"FreeAround", R"(x = f32[4,5,3] parameter(0)
                 y = f32[5,6] parameter(1)
                 ROOT r = f32[4,3,6] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0})",
     1},
    {"MixedTypes", R"(x = bf16[4,5] parameter(0)
                 y = bf16[6,5] parameter(1)
                 ROOT r = f32[4,6] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1})",
     0},
};

// What a decoder asks of the keys and values that it has kept: no copy of them, no dot.
constexpr Case kFewRows[] = {
    {"Scores", R"(q = f32[2,3,32] parameter(0)
                  k = f32[2,40,3,32] parameter(1)
                  ROOT r = f32[2,3,40] dot(q, k), lhs_batch_dims={0,1}, lhs_contracting_dims={2}, rhs_batch_dims={0,2},
                    rhs_contracting_dims={3})",
     1},
    {"Values", R"(p = f32[2,3,40] parameter(0)
                  v = f32[2,40,3,32] parameter(1)
                  ROOT r = f32[2,3,32] dot(p, v), lhs_batch_dims={0,1}, lhs_contracting_dims={2}, rhs_batch_dims={0,2},
                    rhs_contracting_dims={1})",
     1},
    {"GroupsOfHeads", R"(q = bf16[2,3,4,32] parameter(0)
                  k = bf16[2,40,3,32] parameter(1)
                  ROOT r = bf16[2,3,4,40] dot(q, k), lhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_batch_dims={0,2},
                    rhs_contracting_dims={3})",
     1},
    {"MatricesFirst", R"(v = f32[40,3,2,32] parameter(0)
                  p = f32[2,3,40,2] parameter(1)
                  ROOT r = f32[2,3,32,2] dot(v, p), lhs_batch_dims={2,1}, lhs_contracting_dims={0}, rhs_batch_dims={0,1},
                    rhs_contracting_dims={2})",
     2},
    {"BehindATranspose", R"(q = f32[2,3,32] parameter(0)
                  x = f32[2,40,3,32] parameter(1)
                  k = f32[2,3,32,40] transpose(x), dimensions={0,2,3,1}
                  ROOT r = f32[2,3,40] dot(q, k), lhs_batch_dims={0,1}, lhs_contracting_dims={2}, rhs_batch_dims={0,1},
                    rhs_contracting_dims={2})",
     2},
};

class FewRowsTest : public testing::TestWithParam<Case> {};

TEST_P(FewRowsTest, AreSummedWhereTheMatricesLie) {
  CanonicalizeDots pass;
  RunAndCompare(GetParam().text, pass, kRounding);
  const auto module = RunPass(GetParam().text, pass);
  EXPECT_EQ(Count(*module, hlo::Opcode::kDot), 0);
  EXPECT_EQ(Count(*module, hlo::Opcode::kTranspose), GetParam().transposes);
}

INSTANTIATE_TEST_SUITE_P(All, FewRowsTest, testing::ValuesIn(kFewRows),
                         [](const auto& info) { return info.param.name; });

class DotTest : public testing::TestWithParam<Case> {};

TEST_P(DotTest, KeepsItsValueInTheKernelsForm) {
  CanonicalizeDots pass;
  RunAndCompare(GetParam().text, pass, kRounding);
  const auto module = RunPass(GetParam().text, pass);
  for (const hlo::Instruction* instruction : module->entry()->PostOrder()) {
    if (!instruction->Is(hlo::Opcode::kDot)) continue;
    EXPECT_TRUE(DotFormOf(*instruction).has_value()) << instruction->ToString();
  }
  EXPECT_EQ(Count(*module, hlo::Opcode::kTranspose), GetParam().transposes);
}

INSTANTIATE_TEST_SUITE_P(All, DotTest, testing::ValuesIn(kCases), [](const auto& info) { return info.param.name; });

TEST(DotForm, TellsTransposedOperands) {
  const auto module = Parse(R"(x = f32[2,5,4] parameter(0)
                               y = f32[2,6,5] parameter(1)
                               ROOT r = f32[2,4,6] dot(x, y), lhs_batch_dims={0}, lhs_contracting_dims={1},
                                 rhs_batch_dims={0}, rhs_contracting_dims={2})");
  const DotForm form = *DotFormOf(*module->entry()->root());
  EXPECT_TRUE(form.lhs_transposed);
  EXPECT_TRUE(form.rhs_transposed);
  EXPECT_EQ(form.batch, 2);
  EXPECT_EQ(form.m, 4);
  EXPECT_EQ(form.n, 6);
  EXPECT_EQ(form.k, 5);
}

// Attention's keys: a transpose behind a reshape that drops a unit dimension is only another name for the dimensions.
TEST(CanonicalizeDots, ReadsThroughTransposesBehindUnits) {
  constexpr const char* kText = R"(
    q = f32[3,4,5] parameter(0)
    k = f32[1,3,6,5] parameter(1)
    t = f32[1,3,5,6] transpose(k), dimensions={0,1,3,2}
    u = f32[3,5,6] reshape(t)
    ROOT d = f32[3,4,6] dot(q, u), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1})";
  CanonicalizeDots pass;
  RunAndCompare(kText, pass, kRounding);
  const auto module = RunPass(kText, pass);
  const hlo::Instruction* keys = module->entry()->root()->operand(1);
  while (keys->Is(hlo::Opcode::kReshape)) keys = keys->operand(0);
  EXPECT_TRUE(keys->Is(hlo::Opcode::kParameter));
  // A paired unit dimension, units among the free ones, on either side.
  for (const char* text : {R"(
    x = f32[4,1,5] parameter(0)
    y = f32[5,6,1,2] parameter(1)
    a = f32[1,5,4] transpose(x), dimensions={1,2,0}
    b = f32[5,4,1] reshape(a)
    t = f32[2,1,5,6] transpose(y), dimensions={3,2,0,1}
    u = f32[2,1,1,5,6] reshape(t)
    ROOT d = f32[4,1,2,1,1,6] dot(b, u), lhs_contracting_dims={0}, rhs_contracting_dims={3})",
                           R"(
    x = f32[1,4,5] parameter(0)
    y = f32[6,5] parameter(1)
    t = f32[5,6] transpose(y), dimensions={1,0}
    u = f32[1,5,6] reshape(t)
    ROOT d = f32[1,4,6] dot(x, u), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1})"}) {
    RunAndCompare(text, pass, kRounding);
  }
}

// Many rows by a few columns: the rows are read as they lie, as the right side of the columns.
TEST(CanonicalizeDots, ExchangesAFewColumns) {
  const auto rows_of_dot = [](int64_t rows, int64_t depth, const std::string& columns, int64_t contracting,
                              int64_t count) {
    const std::string text = fmt::format(
        "x = f32[{0},{1}] parameter(0)\n y = f32[{2}] parameter(1)\n "
        "ROOT d = f32[{0},{4}] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{{3}}}",
        rows, depth, columns, contracting, count);
    CanonicalizeDots pass;
    RunAndCompare(text, pass, kRounding);
    const auto module = RunPass(text, pass);
    for (const auto& op : module->entry()->instructions()) {
      if (op->Is(hlo::Opcode::kDot)) return op->shape().dimension(0);
    }
    return int64_t{0};
  };
  EXPECT_EQ(rows_of_dot(1024, 16, "16,3", 0, 3), 3);
  EXPECT_EQ(rows_of_dot(2000, 20, "4,20", 1, 4), 4);
  EXPECT_EQ(rows_of_dot(1024, 16, "16,5", 0, 5), 1024) << "more columns";
  EXPECT_EQ(rows_of_dot(1000, 16, "16,3", 0, 3), 1000) << "fewer rows";
  EXPECT_EQ(rows_of_dot(1024, 15, "15,3", 0, 3), 1024) << "shorter sums";
}

}  // namespace
}  // namespace hlorun::passes
