// Products with matrices of a few elements: which become sums of elementwise products, with the same values.
#include "passes/expand/tiny_products.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

std::string Dot(const std::string& result, const std::string& lhs, const std::string& rhs, const std::string& dims) {
  return fmt::format(
      "HloModule m\nENTRY e {{\n  x = {} parameter(0)\n  y = {} parameter(1)\n  ROOT r = {} dot(x, y), {}\n}}\n", lhs,
      rhs, result, dims);
}

constexpr const char* kPlain = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";

// How many products of two elements each result is the sum of; 0: it stays a dot.
int64_t Depth(const std::string& text) {
  TinyProducts pass;
  RunAndCompare(text, pass, kRounding);
  const auto module = RunPass(text, pass);
  EXPECT_EQ(Count(*module, hlo::Opcode::kDot), Count(*module, hlo::Opcode::kMultiply) == 0 ? 1 : 0);
  return Count(*module, hlo::Opcode::kMultiply);
}

TEST(TinyProducts, Rows) {
  EXPECT_EQ(Depth(Dot("f32[300,3]", "f32[300,3]", "f32[3,3]", kPlain)), 3);
  EXPECT_EQ(Depth(Dot("f32[300,4]", "f32[300,8]", "f32[4,8]", "lhs_contracting_dims={1}, rhs_contracting_dims={1}")),
            8);
  EXPECT_EQ(Depth(Dot("f32[300]", "f32[3,300]", "f32[3]", "lhs_contracting_dims={0}, rhs_contracting_dims={0}")), 3);
  EXPECT_EQ(Depth(Dot("f64[20,30,2]", "f64[20,30,2,2]", "f64[2,2,2]",
                      "lhs_contracting_dims={3,2}, rhs_contracting_dims={1,0}")),
            4);
  EXPECT_EQ(Depth(Dot("bf16[300,3]", "bf16[300,3]", "bf16[3,3]", kPlain)), 3);
  EXPECT_EQ(Depth(Dot("f32[300,3]", "f16[300,3]", "f16[3,3]", kPlain)), 3);
  EXPECT_EQ(Depth(Dot("s32[300,3]", "s8[300,3]", "s8[3,3]", kPlain)), 3);
}

TEST(TinyProducts, Batches) {
  EXPECT_EQ(Depth(Dot("f32[300,3]", "f32[300,3,3]", "f32[300,3]",
                      "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}")),
            3);
  EXPECT_EQ(
      Depth(Dot("f32[5,60,3]", "f32[5,60,4]", "f32[5,60,3,4]",
                "lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={2}, rhs_contracting_dims={3}")),
      4);
}

TEST(TinyProducts, OthersStay) {
  EXPECT_EQ(Depth(Dot("f32[255,3]", "f32[255,3]", "f32[3,3]", kPlain)), 0) << "few rows";
  EXPECT_EQ(Depth(Dot("f32[300,5]", "f32[300,5]", "f32[5,5]", kPlain)), 0) << "longer rows";
  EXPECT_EQ(Depth(Dot("f32[300,3]", "f32[300,9]", "f32[9,3]", kPlain)), 0) << "deeper sums";
  EXPECT_EQ(Depth(Dot("f32[3,300]", "f32[3,3]", "f32[3,300]", kPlain)), 0) << "whole vectors";
  EXPECT_EQ(Depth(Dot("c64[300,3]", "c64[300,3]", "c64[3,3]", kPlain)), 0) << "complex numbers";
  EXPECT_EQ(Depth(Dot("f32[300,2,2]", "f32[300,2,2]", "f32[300,2,2]",
                      "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}")),
            0)
      << "matrices by matrices";
}

}  // namespace
}  // namespace hlorun::passes
