// Attention and its gradient as loops over tiles: the same values, and no matrix of scores.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "passes/expand/tile_products.h"
#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

using hlo::Opcode;

// With a little memory.
class WithLimit : public Pass {
 public:
  explicit WithLimit(int64_t limit) { options_.memory_limit = limit; }
  std::string_view name() const override { return pass_.name(); }
  bool Run(hlo::Module& module, PassContext& context) override {
    PassContext own{context.device, options_, context.kernels, {}};
    return pass_.Run(module, own);
  }

 private:
  TileProducts pass_;
  CompileOptions options_;
};

constexpr const char* kReducers = R"(HloModule m
  largest { a = f32[] parameter(0)
            b = f32[] parameter(1)
            ROOT r = f32[] maximum(a, b) }
  sum { a = f32[] parameter(0)
        b = f32[] parameter(1)
        ROOT r = f32[] add(a, b) }
)";

// As JAX traces it, with a causal mask and a bias; queries do not divide into tiles.
std::string Attention(const std::string& result) {
  constexpr const char* kEntry = R"(ENTRY e {
    q = f32[2,130,3,5] parameter(0)
    k = f32[2,70,3,5] parameter(1)
    v = f32[2,70,3,5] parameter(2)
    bias = f32[3,130,70] parameter(3)
    s = f32[2,3,130,70] dot(q, k), lhs_batch_dims={0,2}, lhs_contracting_dims={3}, rhs_batch_dims={0,2}, rhs_contracting_dims={3}
    bb = f32[2,3,130,70] broadcast(bias), dimensions={1,2,3}
    sb = f32[2,3,130,70] add(s, bb)
    i = s32[130,70] iota(), iota_dimension=0
    j = s32[130,70] iota(), iota_dimension=1
    seen = pred[130,70] compare(i, j), direction=GE
    mask = pred[2,3,130,70] broadcast(seen), dimensions={2,3}
    low = f32[] constant(-1e30)
    lows = f32[2,3,130,70] broadcast(low), dimensions={}
    ms = f32[2,3,130,70] select(mask, sb, lows)
    x = f32[2,3,130] reduce(ms, low), dimensions={3}, to_apply=largest
    x1 = f32[2,3,130,1] reshape(x)
    x2 = f32[2,3,130] reshape(x1)
    xb = f32[2,3,130,70] broadcast(x2), dimensions={0,1,2}
    d = f32[2,3,130,70] subtract(ms, xb)
    e = f32[2,3,130,70] exponential(d)
    zero = f32[] constant(0)
    z = f32[2,3,130] reduce(e, zero), dimensions={3}, to_apply=sum
    zb = f32[2,3,130,70] broadcast(z), dimensions={0,1,2}
    p = f32[2,3,130,70] divide(e, zb)
    o = f32[2,3,5,130] dot(v, p), lhs_batch_dims={0,2}, lhs_contracting_dims={1}, rhs_batch_dims={0,1}, rhs_contracting_dims={3}
    t = f32[2,130,3,5] transpose(o), dimensions={0,3,1,2}
    )";
  return fmt::format("{}{}{}}}", kReducers, kEntry, result);
}

TEST(TileProducts, Attention) {
  WithLimit pass(64 << 10);
  const std::string text = Attention("ROOT r = f32[2,130,3,5] negate(t)");
  RunAndCompare(text, pass, kRounding);
  const auto module = RunPass(text, pass);
  EXPECT_EQ(Count(*module, Opcode::kWhile), 1);
}

TEST(TileProducts, SmallProductsStayWhole) {
  const std::string text = Attention("ROOT r = f32[2,130,3,5] negate(t)");
  TileProducts without_limit;
  EXPECT_EQ(Count(*RunPass(text, without_limit), Opcode::kWhile), 0);
  WithLimit much(8 << 20);
  EXPECT_EQ(Count(*RunPass(text, much), Opcode::kWhile), 0);
}

TEST(TileProducts, ScoresThatAreWantedStay) {
  WithLimit pass(64 << 10);
  const std::string text = Attention("ROOT r = (f32[2,130,3,5], f32[2,3,130,70]) tuple(t, p)");
  EXPECT_EQ(Count(*RunPass(text, pass), Opcode::kWhile), 0);
}

TEST(TileProducts, TheResultMayBeTheRoot) {
  WithLimit pass(64 << 10);
  constexpr const char* kText = R"(q = f32[4,90,5] parameter(0)
    k = f32[4,70,5] parameter(1)
    s = f32[4,90,70] dot(q, k), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={2}
    t = f32[4,90,70] tanh(s)
    ROOT r = f32[4,90,5] dot(t, k), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1})";
  RunAndCompare(kText, pass, kRounding);
  EXPECT_EQ(Count(*RunPass(kText, pass), Opcode::kWhile), 1);
}

// What is wanted beside the result is as small: a tile of it is a result too.
TEST(TileProducts, SumsOfRowsAreResultsToo) {
  WithLimit pass(64 << 10);
  const std::string text = Attention("ROOT r = (f32[2,130,3,5], f32[2,3,130]) tuple(t, z)");
  RunAndCompare(text, pass, kRounding);
  EXPECT_EQ(Count(*RunPass(text, pass), Opcode::kWhile), 1);
}

constexpr const char* kGradientEntry = R"(ENTRY e {
    q = f32[6,80,5] parameter(0)
    k = f32[6,80,5] parameter(1)
    v = f32[6,80,5] parameter(2)
    g = f32[6,80,5] parameter(3)
    s = f32[6,80,80] dot(q, k), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={2}
    low = f32[] constant(-inf)
    x = f32[6,80] reduce(s, low), dimensions={2}, to_apply=largest
    xb = f32[6,80,80] broadcast(x), dimensions={0,1}
    d = f32[6,80,80] subtract(s, xb)
    e = f32[6,80,80] exponential(d)
    zero = f32[] constant(0)
    z = f32[6,80] reduce(e, zero), dimensions={2}, to_apply=sum
    zb = f32[6,80,80] broadcast(z), dimensions={0,1}
    p = f32[6,80,80] divide(e, zb)
    o = f32[6,80,5] dot(p, v), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}
    t = f32[6,80,5] tanh(o)
    do = f32[6,80,5] multiply(t, g)
    dv = f32[6,80,5] dot(p, do), lhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_batch_dims={0}, rhs_contracting_dims={1}
    dp = f32[6,80,80] dot(do, v), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={2}
    pdp = f32[6,80,80] multiply(dp, p)
    w = f32[6,80] reduce(pdp, zero), dimensions={2}, to_apply=sum
    wb = f32[6,80,80] broadcast(w), dimensions={0,1}
    dpw = f32[6,80,80] subtract(dp, wb)
    ds = f32[6,80,80] multiply(p, dpw)
    dq = f32[6,80,5] dot(ds, k), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}
    dk = f32[6,80,5] dot(ds, q), lhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_batch_dims={0}, rhs_contracting_dims={1}
    ROOT r = (f32[6,80,5], f32[6,80,5], f32[6,80,5], f32[6,80,5]) tuple(o, dq, dk, dv) })";

// Scores are computed again for the gradient where they would take too much of the memory; else only the gradient's own
// are not kept.
TEST(TileProducts, Gradient) {
  WithLimit much(1 << 20), little(1 << 18);
  const std::string gradient = fmt::format("{}{}", kReducers, kGradientEntry);
  RunAndCompare(gradient, much, kRounding);
  EXPECT_EQ(Count(*RunPass(gradient, much), Opcode::kWhile), 1);
  RunAndCompare(gradient, little, kRounding);
  EXPECT_EQ(Count(*RunPass(gradient, little), Opcode::kWhile), 2);
}

}  // namespace
}  // namespace hlorun::passes
