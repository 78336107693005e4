// What joins a reduce-window's kernel: text in, the kernels that come out, and the evaluator's word that they compute
// the same.
#include "passes/fusion/pooling.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hlo/evaluator/evaluator.h"
#include "hlo/text/printer.h"
#include "hlo/verifier.h"
#include "passes/fusion/fusion.h"
#include "passes/fusion/hero.h"
#include "passes/generic_context.h"
#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;
using Kernels = std::vector<KernelKind>;

constexpr const char* kHeader = R"(HloModule m
add { add.a = f32[] parameter(0)  add.b = f32[] parameter(1)  ROOT add.r = f32[] add(add.a, add.b) }
max { max.a = f32[] parameter(0)  max.b = f32[] parameter(1)  ROOT max.r = f32[] maximum(max.a, max.b) }
largest { l.a = f32[] parameter(0)  l.i = s32[] parameter(1)  l.b = f32[] parameter(2)  l.j = s32[] parameter(3)
  l.p = pred[] compare(l.a, l.b), direction=GE
  l.v = f32[] select(l.p, l.a, l.b)  l.k = s32[] select(l.p, l.i, l.j)  ROOT l.t = (f32[], s32[]) tuple(l.v, l.k) }
ge { ge.a = f32[] parameter(0)  ge.b = f32[] parameter(1)  ROOT ge.r = pred[] compare(ge.a, ge.b), direction=GE }
ENTRY e {
  zero = f32[] constant(0)
  low = f32[] constant(-inf)
)";

// Of the entry's kernels, in topological order.
Kernels Fuse(const std::string& body) {
  const std::unique_ptr<hlo::Module> module = Parse(kHeader + body + "\n}");
  const std::unique_ptr<hlo::Module> before = module->Clone();
  GenericContext context;
  Fusion().Run(*module, context);
  hlo::VerifyModule(*module);
  const auto arguments = RandomArguments(*before, Inputs::kMild, 1);
  EXPECT_EQ(Difference(hlo::Evaluate(*before, arguments), hlo::Evaluate(*module, arguments), kBitwise), "")
      << hlo::PrintModule(*module);
  Kernels kernels;
  for (const hlo::Instruction* instruction : module->entry()->PostOrder()) {
    const KernelKind kind = HeroOf(*instruction).kind;
    if (kind != KernelKind::kNone) kernels.push_back(kind);
  }
  return kernels;
}

TEST(Pooling, BeginsWithNormAndActivationAndEndsWithScaleAndResidual) {
  EXPECT_THAT(Fuse(R"(
  x = f32[2,8,8,4] parameter(0)
  scale = f32[4] parameter(1)
  residual = f32[2,4,4,4] parameter(2)
  s = f32[2,8,8,4] broadcast(scale), dimensions={3}
  y = f32[2,8,8,4] multiply(x, s)
  zeros = f32[2,8,8,4] broadcast(zero), dimensions={}
  a = f32[2,8,8,4] maximum(y, zeros)
  p = f32[2,4,4,4] reduce-window(a, zero), window={size=1x3x3x1 stride=1x2x2x1 pad=0_0x1_0x1_0x0_0}, to_apply=add
  ninth = f32[] constant(0.11)
  n = f32[2,4,4,4] broadcast(ninth), dimensions={}
  m = f32[2,4,4,4] multiply(p, n)
  ROOT r = f32[2,4,4,4] add(m, residual))"),
              ElementsAre(KernelKind::kReduceWindow));
}

// `chain` makes y of x, f32[2,8,8,4].
Kernels FuseBefore(const std::string& chain, const std::string& window, const std::string& pooled) {
  return Fuse(fmt::format(R"(
  x = f32[2,8,8,4] parameter(0)
  {}
  ROOT p = f32{} reduce-window(y, low), window={{{}}}, to_apply=max)",
                          chain, pooled, window));
}

TEST(Pooling, ComputesWhatIsCheapAsOftenAsItsWindowsOverlap) {
  constexpr const char* kApart = "size=1x2x2x1 stride=1x2x2x1";
  constexpr const char* kTwoApart = "size=1x3x3x1 stride=1x2x2x1 pad=0_0x1_0x1_0x0_0";
  constexpr const char* kOneApart = "size=1x3x3x1 pad=0_0x1_1x1_1x0_0";
  constexpr const char *kHalf = "[2,4,4,4]", *kWhole = "[2,8,8,4]";
  const Kernels one = {KernelKind::kReduceWindow}, two = {KernelKind::kLoop, KernelKind::kReduceWindow};
  const std::string cheap = "y = f32[2,8,8,4] negate(x)", costly = "y = f32[2,8,8,4] exponential(x)";
  EXPECT_EQ(FuseBefore(cheap, kApart, kHalf), one);
  EXPECT_EQ(FuseBefore(cheap, kTwoApart, kHalf), one);
  EXPECT_EQ(FuseBefore(cheap, kOneApart, kWhole), two);
  // Each element once.
  EXPECT_EQ(FuseBefore(costly, kApart, kHalf), one);
  EXPECT_EQ(FuseBefore(costly, kTwoApart, kHalf), two);
}

TEST(Pooling, RoundsOnceWhereWindowsOverlap) {
  const std::string scaled = R"(n = bf16[2,8,8,4] convert(x)
  m = bf16[2,8,8,4] multiply(n, n)
  y = f32[2,8,8,4] convert(m))";
  // What is stored are the products, in 16 bits.
  EXPECT_THAT(FuseBefore(scaled, "size=1x3x3x1 stride=1x2x2x1 pad=0_0x1_0x1_0x0_0", "[2,4,4,4]"),
              ElementsAre(KernelKind::kLoop, KernelKind::kReduceWindow));
  EXPECT_THAT(FuseBefore(scaled, "size=1x2x2x1 stride=1x2x2x1", "[2,4,4,4]"), ElementsAre(KernelKind::kReduceWindow));
}

TEST(Pooling, WidensBf16ForUpToNineTaps) {
  const auto widened = [](const std::string& window) {
    return Fuse(fmt::format(R"(
  x = bf16[2,8,8,4] parameter(0)
  y = f32[2,8,8,4] convert(x)
  ROOT p = f32[2,8,8,4] reduce-window(y, zero), window={{{}}}, to_apply=add)",
                            window));
  };
  EXPECT_THAT(widened("size=1x3x3x1 pad=0_0x1_1x1_1x0_0"), ElementsAre(KernelKind::kReduceWindow));
  EXPECT_THAT(widened("size=1x5x5x1 pad=0_0x2_2x2_2x0_0"), ElementsAre(KernelKind::kLoop, KernelKind::kReduceWindow));
}

TEST(Pooling, ReadsWhatOthersNeedInMemory) {
  EXPECT_THAT(Fuse(R"(
  x = f32[2,8,8,4] parameter(0)
  y = f32[2,8,8,4] negate(x)
  p = f32[2,4,4,4] reduce-window(y, low), window={size=1x2x2x1 stride=1x2x2x1}, to_apply=max
  ROOT t = (f32[2,8,8,4], f32[2,4,4,4]) tuple(y, p))"),
              ElementsAre(KernelKind::kLoop, KernelKind::kReduceWindow));
}

TEST(Pooling, MovesNothingInItsTaps) {
  EXPECT_THAT(FuseBefore(R"(t = f32[2,4,8,8] parameter(1)
  y = f32[2,8,8,4] transpose(t), dimensions={0,2,3,1})",
                         "size=1x2x2x1 stride=1x2x2x1", "[2,4,4,4]"),
              ElementsAre(KernelKind::kLoop, KernelKind::kReduceWindow));
}

TEST(Pooling, HasSeveralResults) {
  EXPECT_THAT(Fuse(R"(
  x = f32[2,8,8,4] parameter(0)
  p = f32[2,4,4,4] reduce-window(x, low), window={size=1x2x2x1 stride=1x2x2x1}, to_apply=max
  n = f32[2,4,4,4] negate(p)
  ROOT t = (f32[2,4,4,4], f32[2,4,4,4]) tuple(n, p))"),
              ElementsAre(KernelKind::kReduceWindow));
}

TEST(Pooling, PlacesOfTheLargestAreNumberedInTheTaps) {
  EXPECT_THAT(Fuse(R"(
  x = f32[2,8,8,4] parameter(0)
  none = s32[] constant(-1)
  n = s32[2,8,8,4] iota(), iota_dimension=2
  ROOT p = (f32[2,4,4,4], s32[2,4,4,4]) reduce-window(x, n, low, none),
    window={size=1x2x2x1 stride=1x2x2x1}, to_apply=largest)"),
              ElementsAre(KernelKind::kReduceWindow));
}

TEST(Pooling, OneReductionAKernel) {
  EXPECT_THAT(Fuse(R"(
  x = f32[2,8,8,4] parameter(0)
  p = f32[2,4,4,4] reduce-window(x, low), window={size=1x2x2x1 stride=1x2x2x1}, to_apply=max
  ROOT r = f32[4] reduce(p, zero), dimensions={0,1,2}, to_apply=add)"),
              ElementsAre(KernelKind::kReduceWindow, KernelKind::kReduction));
  EXPECT_THAT(Fuse(R"(
  x = f32[4,4] parameter(0)
  y = f32[4,4] parameter(1)
  w = f32[4,4] parameter(2)
  p = f32[4,4] reduce-window(x, zero), window={size=1x3 pad=0_0x1_1}, to_apply=add
  d = f32[4,4] dot(y, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[4,4] add(p, d))"),
              UnorderedElementsAre(KernelKind::kReduceWindow, KernelKind::kDot));
}

TEST(Pooling, RunningSumsStayAlone) {
  EXPECT_THAT(Fuse(R"(
  x = f32[70] parameter(0)
  y = f32[70] negate(x)
  p = f32[70] reduce-window(y, zero), window={size=70 pad=69_0}, to_apply=add
  ROOT r = f32[70] negate(p))"),
              ElementsAre(KernelKind::kLoop, KernelKind::kReduceWindow, KernelKind::kLoop));
}

// As JAX has it: padded with -inf in front, the padding cut off again, masked by the activation's gradient.
std::string Gradient(const std::string& rest) {
  return fmt::format(R"(
  x = f32[2,8,8,4] parameter(0)
  s = f32[2,4,4,4] parameter(1)
  zeros = f32[2,8,8,4] broadcast(zero), dimensions={{}}
  y = f32[2,8,8,4] sqrt(x)
  p = f32[2,9,9,4] pad(y, low), padding=0_0x0_1x0_1x0_0
  g = f32[2,9,9,4] select-and-scatter(p, s, zero), window={{size=1x3x3x1 stride=1x2x2x1}}, select=ge, scatter=add
  {})",
                     rest);
}

TEST(Pooling, GradientReadsWhatIsPaddedAndFinishesItsPart) {
  EXPECT_THAT(Fuse(Gradient(R"(
  c = f32[2,8,8,4] slice(g), slice={[0:2], [0:8], [0:8], [0:4]}
  m = pred[2,8,8,4] compare(y, zeros), direction=GT
  r = f32[2,8,8,4] select(m, c, zeros)
  ROOT t = (f32[2,8,8,4], f32[2,8,8,4]) tuple(r, y))")),
              ElementsAre(KernelKind::kLoop, KernelKind::kSelectAndScatter));
}

TEST(Pooling, GradientThatIsReadTwiceOrTurnedIsStored) {
  EXPECT_THAT(Fuse(Gradient(R"(
  c = f32[2,8,8,4] slice(g), slice={[0:2], [0:8], [0:8], [0:4]}
  b = f32[4] reduce(g, zero), dimensions={0,1,2}, to_apply=add
  ROOT t = (f32[2,8,8,4], f32[4]) tuple(c, b))")),
              UnorderedElementsAre(KernelKind::kSelectAndScatter, KernelKind::kLoop, KernelKind::kReduction));
  EXPECT_THAT(Fuse(Gradient(R"(
  c = f32[2,8,8,4] slice(g), slice={[0:2], [0:8], [0:8], [0:4]}
  ROOT t = f32[2,4,8,8] transpose(c), dimensions={0,3,1,2})")),
              ElementsAre(KernelKind::kSelectAndScatter, KernelKind::kLoop));
  // What the windows read is not turned in them, either, though each element is read once.
  EXPECT_THAT(Fuse(R"(
  x = f32[2,4,7,8] parameter(0)
  s = f32[2,4,4,4] parameter(1)
  y = f32[2,7,8,4] transpose(x), dimensions={0,2,3,1}
  p = f32[2,8,8,4] pad(y, low), padding=0_0x0_1x0_0x0_0
  ROOT g = f32[2,8,8,4] select-and-scatter(p, s, zero), window={size=1x2x2x1 stride=1x2x2x1}, select=ge, scatter=add)"),
              ElementsAre(KernelKind::kLoop, KernelKind::kSelectAndScatter));
}

}  // namespace
}  // namespace hlorun::passes
