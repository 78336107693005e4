// Cumulative ops along and beside varying dimensions: which windows they are, what is masked, and where they end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/dynamic/extents.h"
#include "hlo/cumulative_window.h"
#include "passes/fusion/hero.h"
#include "passes/kernel_model.h"
#include "passes/pipeline.h"
#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kAdd = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }\n";

std::string Program(const std::string& shape, const std::string& window) {
  return fmt::format(
      "HloModule m\n{0}ENTRY e {{ x = {1} parameter(0)  z = f32[] constant(0)  ROOT r = {1} reduce-window(x, z), "
      "window={{{2}}}, to_apply=add }}\n",
      kAdd, shape, window);
}

TEST(CumulativeWindows, ReachToOneEndOfOneDimension) {
  const auto of = [](const std::string& window) -> std::string {
    const auto module = Parse(Program("f32[7,5]", window));
    const auto found = CumulativeWindowOf(*module->entry()->root());
    return found ? fmt::format("{}{}", found->dimension, found->reverse ? " from the end" : "") : "none";
  };
  EXPECT_EQ(of("size=7x1 pad=6_0x0_0"), "0");
  EXPECT_EQ(of("size=1x5 pad=0_0x0_4"), "1 from the end");
  EXPECT_EQ(of("size=9x1 pad=8_0x0_0"), "0");
  EXPECT_EQ(of("size=3x1 pad=2_0x0_0"), "none");  // does not reach
  EXPECT_EQ(of("size=7x1 pad=3_3x0_0"), "none");  // to neither end
  EXPECT_EQ(of("size=7x5 pad=6_0x4_0"), "none");  // two dimensions
  EXPECT_EQ(of("size=1x1"), "none");
}

// A backend whose kernels end where running values meet neutral elements only.
class EndsAtSizes : public GenericKernelModel {
 public:
  bool BoundsContraction(const hlo::Instruction&) const override { return true; }
};

std::string Lowered(const std::string& text) {
  const auto module = Parse(text);
  const DeviceSpec device;
  const CompileOptions options;
  const EndsAtSizes kernels;
  PassContext context{device, options, kernels, {}};
  OptimizationPipeline(options, device).Run(*module, context);
  std::string said;
  for (const auto& instruction : module->entry()->instructions()) {
    if (instruction->shape().IsScalar()) continue;  // arithmetic of sizes
    const Hero hero = HeroOf(*instruction);
    if (hero.kind == KernelKind::kLoop) said += "loop";
    if (hero.kind == KernelKind::kReduceWindow) said += "window";
    if (hero.kind != KernelKind::kLoop && hero.kind != KernelKind::kReduceWindow) continue;
    const KernelExtents extents = ExtentsOf(*instruction);
    for (const auto& result : extents.results) said += fmt::format(" {}", result.dimension);
    said += extents.contraction ? " from the size; " : "; ";
  }
  return said;
}

TEST(CumulativeOps, FromTheBeginningEndAtTheSizeWithoutAMask) {
  EXPECT_EQ(Lowered(Program("f32[<=4096,512]", "size=4096x1 pad=4095_0x0_0")), "window 0; ");
  EXPECT_EQ(Lowered(Program("f32[512,<=4096]", "size=1x4096 pad=0_0x4095_0")), "window 1; ");
}

TEST(CumulativeOps, FromTheEndStartAtTheSize) {
  EXPECT_EQ(Lowered(Program("f32[<=4096,512]", "size=4096x1 pad=0_4095x0_0")), "loop 0; window 0 from the size; ");
}

TEST(CumulativeOps, BesideVaryingDimensionsEndAtTheirSizes) {
  EXPECT_EQ(Lowered(Program("f32[<=4096,512]", "size=1x512 pad=0_0x511_0")), "window 0; ");
}

// A reducer of its own; both arrays are masked, and nobody reads the first result, which is not written.
TEST(CumulativeOps, OfReducersOfTheirOwnDoTheSame) {
  const auto lines = [](const std::string& pad) {
    return fmt::format(
        "HloModule m\n"
        "after {{ a = f32[] parameter(0)  b = f32[] parameter(1)  c = f32[] parameter(2)  d = f32[] parameter(3)\n"
        "  e = f32[] multiply(a, c)  f = f32[] multiply(c, b)  g = f32[] add(f, d)\n"
        "  ROOT r = (f32[], f32[]) tuple(e, g) }}\n"
        "ENTRY e {{ x = f32[<=4096,512] parameter(0)  y = f32[<=4096,512] parameter(1)  one = f32[] constant(1)\n"
        "  zero = f32[] constant(0)  w = (f32[<=4096,512], f32[<=4096,512]) reduce-window(x, y, one, zero),\n"
        "  window={{size=4096x1 pad={}x0_0}}, to_apply=after\n"
        "  ROOT r = f32[<=4096,512] get-tuple-element(w), index=1 }}\n",
        pad);
  };
  EXPECT_EQ(Lowered(lines("4095_0")), "window 0; ");
  EXPECT_THAT(Lowered(lines("0_4095")), HasSubstr("window 0 from the size; "));
}

// A pool that reaches beyond the array sees the mask's elements there, and all of them: a few taps each make their own.
TEST(CumulativeOps, OtherWindowsBeyondTheEndAreMasked) {
  EXPECT_EQ(Lowered(Program("f32[<=4096,512]", "size=5x1 pad=2_2x0_0")), "loop 0; window 0; ");
  EXPECT_EQ(Lowered(Program("f32[<=4096,512]", "size=3x1 pad=1_1x0_0")), "window 0; ");
  EXPECT_EQ(Lowered(Program("f32[<=4096,512]", "size=3x1 pad=2_0x0_0")), "window 0; ");
}

}  // namespace
}  // namespace hlorun::passes
