// Concatenations whose parts products make: updates of one array, which fusion gives to the products' kernels.
#include "passes/expand/parts_in_place.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hlo/text/printer.h"
#include "passes/fusion/fusion.h"
#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

using hlo::Opcode;

// `body` of d: f32[6000,64] and e: f32[6000,32], products of x: f32[6000,20] with y and z, and of p: f32[6000,48].
std::string ProgramOf(const std::string& body) {
  return fmt::format(R"(HloModule m
    add {{ a = f32[] parameter(0)
           b = f32[] parameter(1)
           ROOT c = f32[] add(a, b) }}
    ENTRY e {{
      x = f32[6000,20] parameter(0)
      y = f32[20,64] parameter(1)
      z = f32[20,32] parameter(2)
      p = f32[6000,48] parameter(3)
      w = f32[144,8] parameter(4)
      d = f32[6000,64] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
      e = f32[6000,32] dot(x, z), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
      {}
    }})",
                     body);
}

// How many updates the pass makes of concatenations; values stay.
int64_t Updates(const std::string& body) {
  PartsInPlace pass;
  RunAndCompare(ProgramOf(body), pass, kBitwise);
  return Count(*RunPass(ProgramOf(body), pass), Opcode::kDynamicUpdateSlice);
}

TEST(PartsInPlace, PartsOfOneArray) {
  EXPECT_EQ(Updates("ROOT c = f32[6000,144] concatenate(d, p, e), dimensions={1}"), 3);
  EXPECT_EQ(Updates(R"(f = f32[6000,64] tanh(d)
                       g = f32[6000,64] multiply(f, f)
                       c = f32[6000,144] concatenate(e, g, p), dimensions={1}
                       ROOT r = f32[6000,8] dot(c, w), lhs_contracting_dims={1}, rhs_contracting_dims={0})"),
            3);
  EXPECT_EQ(Updates("ROOT c = f32[12000,64] concatenate(d, d), dimensions={0}"), 0);  // one product, used twice
}

TEST(PartsInPlace, PaddedProducts) {
  EXPECT_EQ(Updates(R"(n = f32[] constant(3)
                       ROOT c = f32[6005,80] pad(d, n), padding=2_3x16_0)"),
            4);
  EXPECT_EQ(Updates(R"(n = f32[] constant(3)
                       f = f32[6000,64] negate(d)
                       ROOT c = f32[6001,64] pad(f, n), padding=1_0x0_0)"),
            2);
  // Elements between others, or left out.
  EXPECT_EQ(Updates(R"(n = f32[] constant(3)
                       ROOT c = f32[11999,64] pad(d, n), padding=0_0_1x0_0)"),
            0);
  EXPECT_EQ(Updates(R"(n = f32[] constant(3)
                       ROOT c = f32[6000,70] pad(d, n), padding=0_0x-2_8)"),
            0);
}

TEST(PartsInPlace, OthersStay) {
  // Read by others, too.
  EXPECT_EQ(Updates(R"(c = f32[6000,112] concatenate(d, p), dimensions={1}
                       ROOT t = (f32[6000,112], f32[6000,64]) tuple(c, d))"),
            0);
  // Consumers that compute it where they read it.
  EXPECT_EQ(Updates(R"(c = f32[6000,112] concatenate(d, p), dimensions={1}
                       ROOT n = f32[6000,112] negate(c))"),
            0);
  EXPECT_EQ(Updates(R"(c = f32[6000,112] concatenate(d, p), dimensions={1}
                       zero = f32[] constant(0)
                       ROOT r = f32[6000] reduce(c, zero), dimensions={1}, to_apply=add)"),
            0);
  // No product.
  EXPECT_EQ(Updates("ROOT c = f32[6000,96] concatenate(p, p), dimensions={1}"), 0);
  // Two products in one part.
  EXPECT_EQ(Updates(R"(f = f32[6000,64] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
                       g = f32[6000,64] multiply(d, f)
                       ROOT c = f32[6000,112] concatenate(g, p), dimensions={1})"),
            0);
  // A small one.
  EXPECT_EQ(Updates("ROOT c = f32[6000,80] concatenate(e, p), dimensions={1}"), 0);
}

// What fusion makes of it: products that store parts, and nothing beside them but what no product makes.
TEST(PartsInPlace, ProductsStoreTheirParts) {
  PartsInPlace pass;
  const auto module = RunPass(ProgramOf(R"(f = f32[6000,64] tanh(d)
      ROOT c = f32[6000,144] concatenate(f, p, e), dimensions={1})"),
                              pass);
  Fusion fusion;
  const std::string fused = RunAndCompare(hlo::PrintModule(*module), fusion);
  const auto after = Parse(fused);
  int fusions = 0, products = 0;
  for (const auto& op : after->entry()->instructions()) {
    EXPECT_FALSE(op->Is(Opcode::kDot) || op->Is(Opcode::kTanh)) << fused;
    if (!op->Is(Opcode::kFusion)) continue;
    ++fusions;
    EXPECT_TRUE(op->called()->root()->Is(Opcode::kDynamicUpdateSlice)) << fused;
    for (const auto& inner : op->called()->instructions()) products += inner->Is(Opcode::kDot) ? 1 : 0;
  }
  EXPECT_EQ(products, 2);
  EXPECT_LE(fusions, 3);
}

}  // namespace
}  // namespace hlorun::passes
