// Which matrices are known to equal their transposes.
#include "passes/simplify/symmetry.h"

#include <gtest/gtest.h>

#include "hlo/text/parser.h"

namespace hlorun::passes {
namespace {

// Of the root of an entry with these ops, x and y: f32[8,8], z: f32[2,8,8], v: f32[8].
bool OfRoot(const std::string& ops) {
  const auto module = hlo::ParseModule(R"(HloModule m
ENTRY e {
  x = f32[8,8] parameter(0)
  y = f32[8,8] parameter(1)
  z = f32[2,8,8] parameter(2)
  v = f32[8] parameter(3)
)" + ops + "\n}\n");
  return IsSymmetric(*module->entry()->root());
}

TEST(Symmetry, ProductsByTheTranspose) {
  EXPECT_FALSE(OfRoot("ROOT r = f32[8,8] negate(x)"));
  EXPECT_TRUE(OfRoot("ROOT r = f32[8,8] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}"));
  EXPECT_FALSE(OfRoot("ROOT r = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}"));
  EXPECT_FALSE(OfRoot("ROOT r = f32[8,8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}"));
  EXPECT_TRUE(OfRoot(R"(t = f32[8,8] transpose(x), dimensions={1,0}
    ROOT r = f32[8,8] dot(x, t), lhs_contracting_dims={1}, rhs_contracting_dims={0})"));
  EXPECT_FALSE(OfRoot(R"(t = f32[8,8] transpose(x), dimensions={1,0}
    ROOT r = f32[8,8] dot(x, t), lhs_contracting_dims={1}, rhs_contracting_dims={1})"));
  EXPECT_TRUE(
      OfRoot("ROOT r = f32[2,8,8] dot(z, z), lhs_batch_dims={0}, rhs_batch_dims={0}, "
             "lhs_contracting_dims={2}, rhs_contracting_dims={2}"));
  // Four dimensions: the last two are both the rhs's.
  EXPECT_FALSE(OfRoot("ROOT r = f32[2,8,2,8] dot(z, z), lhs_contracting_dims={2}, rhs_contracting_dims={2}"));
}

TEST(Symmetry, SumsOfTransposes) {
  const std::string t = "t = f32[8,8] transpose(x), dimensions={1,0}\n";
  EXPECT_TRUE(OfRoot(t + "ROOT r = f32[8,8] add(x, t)"));
  EXPECT_TRUE(OfRoot(t + "ROOT r = f32[8,8] maximum(t, x)"));
  EXPECT_FALSE(OfRoot(t + "ROOT r = f32[8,8] subtract(x, t)"));
  EXPECT_FALSE(OfRoot(t + "ROOT r = f32[8,8] add(y, t)"));
  EXPECT_TRUE(OfRoot(t + R"(a = f32[8,8] exponential(x)
    b = f32[8,8] exponential(t)
    ROOT r = f32[8,8] add(a, b))"));
  EXPECT_FALSE(OfRoot(t + R"(a = f32[8,8] exponential(x)
    b = f32[8,8] cosine(t)
    ROOT r = f32[8,8] add(a, b))"));
  EXPECT_TRUE(OfRoot(R"(i = f32[8,8] broadcast(v), dimensions={0}
    j = f32[8,8] broadcast(v), dimensions={1}
    ROOT r = f32[8,8] add(i, j))"));
  EXPECT_FALSE(OfRoot(R"(i = f32[8,8] broadcast(v), dimensions={0}
    ROOT r = f32[8,8] add(i, i))"));
}

TEST(Symmetry, OnesOfTheDiagonal) {
  const std::string eye = R"(i = s32[8,8] iota(), iota_dimension=0
    j = s32[8,8] iota(), iota_dimension=1
    )";
  EXPECT_TRUE(OfRoot(eye + "ROOT r = pred[8,8] compare(i, j), direction=EQ"));
  EXPECT_TRUE(OfRoot(eye + "ROOT r = pred[8,8] compare(i, j), direction=NE"));
  EXPECT_FALSE(OfRoot(eye + "ROOT r = pred[8,8] compare(i, j), direction=LT"));
  EXPECT_TRUE(OfRoot(eye + R"(p = pred[8,8] compare(i, j), direction=EQ
    f = f32[8,8] convert(p)
    d = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}
    c = f32[] constant(2)
    w = f32[8,8] broadcast(c), dimensions={}
    m = f32[8,8] multiply(f, w)
    ROOT r = f32[8,8] subtract(m, d))"));
  EXPECT_FALSE(OfRoot(eye + R"(p = pred[8,8] compare(i, j), direction=EQ
    ROOT r = f32[8,8] select(p, x, y))"));
}

}  // namespace
}  // namespace hlorun::passes
