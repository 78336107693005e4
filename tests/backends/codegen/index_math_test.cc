#include "backends/opencl/codegen/index_math.h"

#include <gtest/gtest.h>

namespace hlorun::opencl {
namespace {

std::string Text(const IndexMath& math, const Index& x) { return ir::ToString(math.ToExpr(x)); }

TEST(IndexMath, DivisionOfWhatItWasMultipliedBy) {
  IndexMath m;
  const Index i = m.Of(ir::MakeIndex("i", 0, 99)), j = m.Of(ir::MakeIndex("j", 0, 7));
  const Index x = m.Add(m.Mul(i, 8), j);
  EXPECT_EQ(Text(m, m.FloorDiv(x, 8)), "i");
  EXPECT_EQ(Text(m, m.Mod(x, 8)), "j");
  EXPECT_EQ(Text(m, m.FloorDiv(x, 4)), "((i * 2) + (j // 4))");
  EXPECT_EQ(Text(m, m.FloorDiv(x, 16)), "(i // 2)");
  EXPECT_EQ(Text(m, m.Mod(x, 16)), "(j + ((i mod 2) * 8))");
}

TEST(IndexMath, QuotientAndRemainderJoin) {
  IndexMath m;
  const Index x = m.Of(ir::MakeIndex("x", 0, 999));
  EXPECT_EQ(m.Add(m.Mul(m.FloorDiv(x, 12), 12), m.Mod(x, 12)), x);
  EXPECT_EQ(m.Linearize(m.Delinearize(x, {10, 5, 20}), {10, 5, 20}), x);
  // A remainder that is cut again.
  const Index low = m.Mod(x, 20);
  EXPECT_EQ(m.Linearize(m.Delinearize(low, {4, 5}), {4, 5}), low);
  EXPECT_EQ(m.Linearize(m.Delinearize(x, {2, 500}), {2, 500}), x);
  // 2 x 500 seen as 4 x 250 and back again through 10 x 5 x 20.
  const Index y =
      m.Linearize(m.Delinearize(m.Linearize(m.Delinearize(x, {4, 250}), {4, 250}), {10, 5, 20}), {10, 5, 20});
  EXPECT_EQ(y, x);
}

TEST(IndexMath, NestedDivisions) {
  IndexMath m;
  const Index x = m.Of(ir::MakeIndex("x", 0, 9999));
  EXPECT_EQ(m.FloorDiv(m.FloorDiv(x, 4), 3), m.FloorDiv(x, 12));
  EXPECT_EQ(m.Mod(m.Mod(x, 12), 4), m.Mod(x, 4));
  EXPECT_EQ(m.Mod(m.Add(x, 24), 12), m.Mod(x, 12));
}

TEST(IndexMath, RangesDecide) {
  IndexMath m;
  const Index i = m.Of(ir::MakeIndex("i", 0, 9));
  EXPECT_TRUE(ir::IsIntConstant(m.Within(i, 0, 10), 1));
  EXPECT_EQ(ir::ToString(m.Within(i, 0, 9)), "(i < 9)");
  // A multiple, about the number itself.
  EXPECT_EQ(ir::ToString(m.Within(m.Add(m.Mul(i, 2), -1), 0, 100)), "(i >= 1)");
  EXPECT_EQ(ir::ToString(m.Within(m.Add(m.Mul(i, 3), -2), -2, 8)), "(i < 4)");
  EXPECT_EQ(ir::ToString(m.Within(m.Add(m.Mul(i, 3), -2), -2, 7)), "(i < 3)");
  EXPECT_TRUE(m.FloorDiv(i, 10) == Index(0));
  EXPECT_EQ(m.Mod(i, 10), i);
  EXPECT_EQ(m.Mod(m.Add(i, 10), 10), i);
  // Below zero, division still rounds down.
  EXPECT_EQ(Text(m, m.FloorDiv(m.Add(i, -3), 2)), "(((i + 1) // 2) + -2)");
}

// Every identity holds for all values: a brute-force check of division and remainder on sums of two variables.
TEST(IndexMath, AgreesWithArithmetic) {
  for (const int64_t a : {1, 2, 3, 4, 6, 8}) {
    for (const int64_t divisor : {2, 3, 4, 6, 8, 12}) {
      for (const int64_t constant : {-5, 0, 3}) {
        IndexMath m;
        const ir::Var i = ir::MakeIndex("i", 0, 6), j = ir::MakeIndex("j", 0, a - 1);
        const Index x = m.Add(m.Add(m.Mul(m.Of(i), a), m.Of(j)), constant);
        const ir::Expr div = m.ToExpr(m.FloorDiv(x, divisor)), mod = m.ToExpr(m.Mod(x, divisor));
        for (int64_t vi = 0; vi <= 6; ++vi) {
          for (int64_t vj = 0; vj < a; ++vj) {
            const int64_t value = vi * a + vj + constant;
            const int64_t want = (value >= 0 ? value : value - divisor + 1) / divisor;
            const auto at = [&](const ir::Expr& e) {
              return ir::Substitute(ir::Substitute(e, i, ir::Int(vi)), j, ir::Int(vj));
            };
            ASSERT_TRUE(ir::IsIntConstant(at(div), want)) << ir::ToString(div) << " at " << vi << ", " << vj;
            ASSERT_TRUE(ir::IsIntConstant(at(mod), value - want * divisor)) << ir::ToString(mod);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace hlorun::opencl
