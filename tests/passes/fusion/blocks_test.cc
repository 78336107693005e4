// Kernels that become one which goes by blocks, those that must not, and that nothing changes but the number of
// kernels.
#include "passes/fusion/blocks.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hlo/evaluator/evaluator.h"
#include "hlo/text/printer.h"
#include "hlo/verifier.h"
#include "passes/expand/reduce_major_first.h"
#include "passes/fusion/fusion.h"
#include "passes/fusion/hero.h"
#include "passes/generic_context.h"
#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

using testing::ElementsAre;

DeviceSpec SmallCaches() {
  DeviceSpec device;
  device.l2_bytes = 64 << 10;
  return device;
}

// Kinds of the kernels of `body`'s entry computation, which computes what it did before.
std::vector<KernelKind> Kernels(const std::string& body, const DeviceSpec& device = SmallCaches()) {
  const auto module =
      Parse("HloModule m\n add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n" +
            fmt::format("ENTRY e {{ {} }}", body));
  const std::vector<hlo::Literal> arguments = RandomArguments(*module, Inputs::kMild, 7);
  const hlo::Literal expected = hlo::Evaluate(*module, arguments);
  GenericContext context({}, device);
  ReduceMajorFirst().Run(*module, context);
  Fusion().Run(*module, context);
  FormBlocks().Run(*module, context);
  hlo::VerifyModule(*module);
  EXPECT_EQ(Difference(expected, hlo::Evaluate(*module, arguments), kRounding), "") << hlo::PrintModule(*module);
  std::vector<KernelKind> kinds;
  for (const hlo::Instruction* instruction : module->entry()->PostOrder()) {
    const KernelKind kind = HeroOf(*instruction).kind;
    if (kind != KernelKind::kNone) kinds.push_back(kind);
  }
  return kinds;
}

// x less its mean over each image and group of channels, over its deviation; `image` names what stands for x's.
std::string GroupNorm(const std::string& shape, const std::string& end) {
  return fmt::format(R"(x = f32[{0}] parameter(0)
      zero = f32[] constant(0)
      sum = f32[{2},8] reduce(x, zero), dimensions={{1,3}}, to_apply=add
      means = f32[{0}] broadcast(sum), dimensions={{0,2}}
      d = f32[{0}] subtract(x, means)
      q = f32[{0}] multiply(d, d)
      variance = f32[{2},8] reduce(q, zero), dimensions={{1,3}}, to_apply=add
      deviation = f32[{2},8] sqrt(variance)
      deviations = f32[{0}] broadcast(deviation), dimensions={{0,2}}
      n = f32[{0}] divide(d, deviations)
      {1})",
                     shape, end, shape.substr(0, shape.find(',')));
}

TEST(Blocks, GroupNormIsOneKernel) {
  EXPECT_THAT(Kernels(GroupNorm("4,64,8,16", "ROOT r = f32[4,64,8,16] abs(n)")), ElementsAre(KernelKind::kBlocks));
  EXPECT_THAT(Kernels(GroupNorm("4,64,8,32", "ROOT r = f32[4,64,8,32] abs(n)")), ElementsAre(KernelKind::kBlocks));
}

TEST(Blocks, StatisticsMayLeave) {
  EXPECT_THAT(Kernels(GroupNorm("4,64,8,16", "ROOT r = (f32[4,64,8,16], f32[4,8]) tuple(n, deviation)")),
              ElementsAre(KernelKind::kBlocks));
}

// What reads the norm's result comes after it, a product whose result is normalised again between the two.
TEST(Blocks, ProductsLieBetween) {
  EXPECT_THAT(Kernels(GroupNorm("4,64,8,16", R"(flat = f32[256,128] reshape(n)
      w = f32[128,128] parameter(1)
      p = f32[256,128] dot(flat, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      y = f32[4,64,8,16] reshape(p)
      sum2 = f32[4,8] reduce(y, zero), dimensions={1,3}, to_apply=add
      means2 = f32[4,64,8,16] broadcast(sum2), dimensions={0,2}
      ROOT r = f32[4,64,8,16] subtract(y, means2))")),
              ElementsAre(KernelKind::kBlocks, KernelKind::kDot, KernelKind::kBlocks));
}

TEST(Blocks, OfOtherSizesAreLeft) {
  const auto kernels = [](int64_t images, int64_t l2_bytes, DeviceClass device_class = DeviceClass::kCpu) {
    const std::string shape = fmt::format("{},64,8,16", images);
    DeviceSpec device = SmallCaches();
    device.l2_bytes = l2_bytes;
    device.device_class = device_class;
    return Kernels(GroupNorm(shape, fmt::format("ROOT r = f32[{}] abs(n)", shape)), device).size();
  };
  EXPECT_EQ(kernels(4, 64 << 10), 1u);
  EXPECT_GT(kernels(3, 64 << 10), 1u);
  EXPECT_EQ(kernels(9, 64 << 10), 1u);
  EXPECT_GT(kernels(4, 15 << 10), 1u);   // an image is more than twice the cache
  EXPECT_GT(kernels(4, 128 << 10), 1u);  // all of them are in one
  EXPECT_GT(kernels(4, 64 << 10, DeviceClass::kGpu), 1u);
}

// Their sums are in another order than those of kernels of their own.
TEST(Blocks, DoNotDependOnTheComputeUnits) {
  for (const int64_t images : {1, 2, 3, 4, 6, 9}) {
    const std::string shape = fmt::format("{},64,8,16", images);
    const auto kernels = [&](int64_t units) {
      DeviceSpec device = SmallCaches();
      device.compute_units = units;
      return Kernels(GroupNorm(shape, fmt::format("ROOT r = f32[{}] abs(n)", shape)), device);
    };
    for (const int64_t units : {2, 3, 64}) EXPECT_EQ(kernels(units), kernels(1)) << images << " images, " << units;
  }
}

// The second sum is of all images; what reads it is not the first's image's own.
TEST(Blocks, StopWhereImagesMix) {
  EXPECT_THAT(Kernels(R"(x = f32[4,64,128] parameter(0)
      zero = f32[] constant(0)
      sum = f32[4,128] reduce(x, zero), dimensions={1}, to_apply=add
      all = f32[128] reduce(sum, zero), dimensions={0}, to_apply=add
      wide = f32[4,64,128] broadcast(all), dimensions={2}
      ROOT r = f32[4,64,128] subtract(x, wide))"),
              ElementsAre(KernelKind::kReduction, KernelKind::kReduction, KernelKind::kLoop));
  EXPECT_THAT(Kernels(R"(x = f32[4,64,128] parameter(0)
      zero = f32[] constant(0)
      sum = f32[4,128] reduce(x, zero), dimensions={1}, to_apply=add
      other = f32[4,128] reverse(sum), dimensions={0}
      wide = f32[4,64,128] broadcast(other), dimensions={0,2}
      ROOT r = f32[4,64,128] subtract(x, wide))"),
              ElementsAre(KernelKind::kReduction, KernelKind::kLoop, KernelKind::kLoop));
}

// A loop that needs a sum and something that was made of that sum elsewhere.
TEST(Blocks, NothingIsNeededBeforeItIsThere) {
  EXPECT_THAT(Kernels(R"(x = f32[4,64,128] parameter(0)
      w = f32[128,128] parameter(1)
      zero = f32[] constant(0)
      sum = f32[4,128] reduce(x, zero), dimensions={1}, to_apply=add
      p = f32[4,128] dot(sum, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      wide = f32[4,64,128] broadcast(sum), dimensions={0,2}
      scales = f32[4,64,128] broadcast(p), dimensions={0,2}
      d = f32[4,64,128] subtract(x, wide)
      ROOT r = f32[4,64,128] multiply(d, scales))"),
              ElementsAre(KernelKind::kReduction, KernelKind::kDot, KernelKind::kLoop));
}

TEST(Blocks, HaveElements) {
  EXPECT_THAT(Kernels(R"(x = f32[0,64,128] parameter(0)
      zero = f32[] constant(0)
      sum = f32[0,128] reduce(x, zero), dimensions={1}, to_apply=add
      wide = f32[0,64,128] broadcast(sum), dimensions={0,2}
      ROOT r = f32[0,64,128] subtract(x, wide))"),
              ElementsAre(KernelKind::kReduction, KernelKind::kLoop));
}

// A number for each image, of all of its elements, and a view of the sums that leaves.
TEST(Blocks, NumbersAndViewsMayLeave) {
  EXPECT_THAT(Kernels(R"(x = f32[4,64,128] parameter(0)
      zero = f32[] constant(0)
      sum = f32[4,128] reduce(x, zero), dimensions={1}, to_apply=add
      view = f32[4,16,8] reshape(sum)
      number = f32[4] reduce(view, zero), dimensions={1,2}, to_apply=add
      wide = f32[4,64,128] broadcast(number), dimensions={0}
      d = f32[4,64,128] subtract(x, wide)
      ROOT r = (f32[4,64,128], f32[4,16,8], f32[4]) tuple(d, view, number))"),
              ElementsAre(KernelKind::kBlocks));
}

TEST(Blocks, KnowWhatOfAnOperandTheyRead) {
  const auto module = Parse(R"(HloModule m
      add { a = f32[] parameter(0)
            b = f32[] parameter(1)
            ROOT s = f32[] add(a, b) }
      sums { x = f32[4,64,128] parameter(0)
             z = f32[] constant(0)
             ROOT s = f32[4,128] reduce(x, z), dimensions={1}, to_apply=add }
      last { x = f32[4,64,128] parameter(0)
             s = f32[4,128] parameter(1)
             o = f32[64,128] parameter(2)
             w = f32[4,64,128] broadcast(s), dimensions={0,2}
             d = f32[4,64,128] subtract(x, w)
             v = f32[4,64,128] broadcast(o), dimensions={1,2}
             ROOT r = f32[4,64,128] multiply(d, v) }
      steps { x = f32[4,64,128] parameter(0)
              o = f32[64,128] parameter(1)
              s = f32[4,128] fusion(x), kind=kInput, calls=sums
              ROOT r = f32[4,64,128] fusion(x, s, o), kind=kLoop, calls=last }
      ENTRY e { x = f32[4,64,128] parameter(0)
                o = f32[64,128] parameter(1)
                ROOT r = f32[4,64,128] fusion(x, o), kind=kCustom, calls=steps, backend_config={"region":"blocks"} })");
  EXPECT_TRUE(ReadsByBlock(*module->entry()->root(), 0));
  EXPECT_FALSE(ReadsByBlock(*module->entry()->root(), 1));
}

}  // namespace
}  // namespace hlorun::passes
