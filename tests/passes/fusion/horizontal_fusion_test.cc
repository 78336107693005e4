// Kernels that become one launch, those that must not, and that nothing changes but the number of launches.
#include "passes/fusion/horizontal_fusion.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hlo/evaluator/evaluator.h"
#include "hlo/text/printer.h"
#include "hlo/verifier.h"
#include "passes/fusion/fusion.h"
#include "passes/fusion/hero.h"
#include "passes/fusion/side_by_side.h"
#include "passes/generic_context.h"
#include "passes/memory/array_lives.h"
#include "passes/memory/copy_insertion.h"
#include "passes/memory/schedule.h"
#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

DeviceSpec Gpu() {
  DeviceSpec device;
  device.device_class = DeviceClass::kGpu;
  return device;
}

struct Result {
  std::vector<size_t> joined;  // how many parts each launch of several has
  int64_t kernels = 0, copies = 0;
  int64_t grown = 0;  // bytes that the peak is higher
  std::vector<Remark> remarks;
};

// Of the module's control computations; it computes what it did before.
Result Join(const std::string& text, const DeviceSpec& device = Gpu(), const CompileOptions& options = {},
            bool fuse = true) {
  const auto module = Parse(text);
  const std::vector<hlo::Literal> arguments = RandomArguments(*module, Inputs::kMild, 7);
  const hlo::Literal expected = hlo::Evaluate(*module, arguments);
  GenericContext context(options, device);
  if (fuse) Fusion().Run(*module, context);
  Schedule().Run(*module, context);
  const int64_t before = ArrayLives(*module, context.kernels).profile().most();
  HorizontalFusion().Run(*module, context);
  hlo::VerifyModule(*module);
  EXPECT_EQ(Difference(expected, hlo::Evaluate(*module, arguments), kBitwise), "") << hlo::PrintModule(*module);
  Result result;
  result.grown = ArrayLives(*module, context.kernels).profile().most() - before;
  CopyInsertion().Run(*module, context);
  for (const hlo::Computation* computation : module->ControlComputations()) {
    for (const auto& i : computation->instructions()) {
      const KernelKind kind = HeroOf(*i).kind;
      if (kind == KernelKind::kSideBySide) result.joined.push_back(PartsOf(*i).size());
      if (kind != KernelKind::kNone) ++result.kernels;
      if (i->Is(hlo::Opcode::kCopy)) ++result.copies;
    }
  }
  result.remarks = context.remarks;
  return result;
}

std::string Module(const std::string& entry, const std::string& before = "", const std::string& attributes = "") {
  return fmt::format(R"(HloModule m{}
  add {{ a = f32[] parameter(0)
         b = f32[] parameter(1)
         ROOT s = f32[] add(a, b) }}
  {}
  ENTRY e {{ {} }})",
                     attributes, before, entry);
}

// x - 0.5 * dx of `count` arrays of `sizes` in turn. What makes dx: `gradient`, of g.
std::string Updates(int count, const std::vector<int>& sizes, const std::string& gradient = "negate",
                    const std::string& attributes = "") {
  std::string text, results, shapes;
  for (int i = 0; i < count; ++i) {
    const std::string shape = fmt::format("f32[{}]", sizes[static_cast<size_t>(i) % sizes.size()]);
    text += fmt::format(R"(
      x{0} = {1} parameter({2})
      g{0} = {1} parameter({3})
      h{0} = f32[] constant(0.5)
      hs{0} = {1} broadcast(h{0}), dimensions={{}}
      d{0} = {1} {4}(g{0})
      m{0} = {1} multiply(d{0}, hs{0})
      y{0} = {1} subtract(x{0}, m{0}))",
                        i, shape, 2 * i, 2 * i + 1, gradient);
    results += fmt::format("{}y{}", i == 0 ? "" : ", ", i);
    shapes += fmt::format("{}{}", i == 0 ? "" : ", ", shape);
  }
  return Module(fmt::format("{}\n ROOT r = ({}) tuple({})", text, shapes, results), "", attributes);
}

TEST(HorizontalFusion, UpdatesOfAnOptimiserAreOneLaunch) {
  const Result result = Join(Updates(40, {64, 100, 4096}));
  EXPECT_THAT(result.joined, ElementsAre(40));
  EXPECT_EQ(result.kernels, 1);
  ASSERT_EQ(result.remarks.size(), 1u);
  EXPECT_EQ(result.remarks[0].reason, "39 small kernels have work-groups of other kernels' launches");
}

TEST(HorizontalFusion, OnGpusOnly) { EXPECT_THAT(Join(Updates(4, {64, 100}), DeviceSpec()).joined, IsEmpty()); }

TEST(HorizontalFusion, NotUnderAMemoryLimit) {
  CompileOptions options;
  options.memory_limit = 1 << 30;
  EXPECT_THAT(Join(Updates(4, {64, 100}), Gpu(), options).joined, IsEmpty());
}

TEST(HorizontalFusion, AsManyAsALaunchHasArgumentsFor) {
  DeviceSpec device = Gpu();
  device.argument_bytes = 8 * (8 + 3 * 7);  // three arrays each, and what is kept for others
  EXPECT_THAT(Join(Updates(16, {64, 100}), device).joined, ElementsAre(7, 7, 2));
}

TEST(HorizontalFusion, AsManySizesAsTheCodeMayHave) {
  std::vector<int> sizes;
  for (int i = 0; i < 40; ++i) sizes.push_back(65 + i);
  EXPECT_THAT(Join(Updates(40, sizes)).joined, ElementsAre(32, 8));
}

TEST(HorizontalFusion, WhatTakesLongerThanItsLaunchIsLeftAlone) {
  EXPECT_THAT(Join(Updates(4, {64, 1 << 20, 96, 1 << 20})).joined, ElementsAre(2));
}

// Where they are donated, all results still lie where the parameters do.
TEST(HorizontalFusion, DonatedArraysAreUpdatedInPlace) {
  const Result result =
      Join(Updates(3, {64, 100, 70}, "negate", ", input_output_alias={ {0}: (0, {}), {1}: (2, {}), {2}: (4, {}) }"));
  EXPECT_THAT(result.joined, ElementsAre(3));
  EXPECT_EQ(result.copies, 0);
}

// y is read after it was overwritten by nobody: its other reader comes first, in a launch of its own.
TEST(HorizontalFusion, NoReaderMovesBehindWhatOverwrites) {
  const Result result = Join(Module(R"(x = f32[64] parameter(0)
      y = f32[100] parameter(1)
      one = f32[64] exponential(x)
      two = f32[100] exponential(y)
      s = f32[64] sine(one)
      e = f32[64] exponential(s)
      ROOT r = (f32[64], f32[100], f32[64]) tuple(one, two, e))",
                                    "", ", input_output_alias={ {1}: (1, {}) }"));
  EXPECT_EQ(result.copies, 0);
}

TEST(HorizontalFusion, DependentKernelsStayApart) {
  // Each sum needs the one before.
  EXPECT_THAT(Join(Module(R"(x = f32[64,8] parameter(0)
      z = f32[] constant(0)
      a = f32[64] reduce(x, z), dimensions={1}, to_apply=add
      as = f32[64,8] broadcast(a), dimensions={0}
      y = f32[64,8] multiply(as, x)
      b = f32[64] reduce(y, z), dimensions={1}, to_apply=add
      bs = f32[64,8] broadcast(b), dimensions={0}
      w = f32[64,8] multiply(bs, x)
      ROOT c = f32[64] reduce(w, z), dimensions={1}, to_apply=add)"))
                  .joined,
              IsEmpty());
}

// Two chains of three kernels of the same ops: the two of a step run together, never two of one chain.
TEST(HorizontalFusion, ChainsGoStepByStep) {
  const auto chain = [](const std::string& name, int64_t parameter, int64_t size) {
    std::string text = fmt::format("{0}0 = f32[{2},8] parameter({1})\n", name, parameter, size);
    for (int i = 0; i < 3; ++i) {
      text += fmt::format(R"({0}r{1} = f32[{2}] reduce({0}{1}, z), dimensions={{1}}, to_apply=add
        {0}b{1} = f32[{2},8] broadcast({0}r{1}), dimensions={{0}}
        {0}{3} = f32[{2},8] multiply({0}b{1}, {0}0)
        )",
                          name, i, size, i + 1);
    }
    return text;
  };
  const Result result = Join(Module("z = f32[] constant(0)\n" + chain("a", 0, 64) + chain("b", 1, 80) +
                                    "ROOT r = (f32[64,8], f32[80,8]) tuple(a3, b3)"),
                             Gpu(), {}, /*fuse=*/false);
  EXPECT_THAT(result.joined, testing::Each(2));
  EXPECT_GE(result.joined.size(), 2u);
}

TEST(HorizontalFusion, UnlikeKernelsStayApart) {
  EXPECT_THAT(Join(Module(R"(x = f32[64] parameter(0)
      y = f32[100] parameter(1)
      a = f32[64] sine(x)
      b = f32[100] cosine(y)
      ROOT r = (f32[64], f32[100]) tuple(a, b))"))
                  .joined,
              IsEmpty());
}

TEST(HorizontalFusion, NothingMovesAcrossWhatHasEffects) {
  const std::string module = Module(R"(x = f32[64] parameter(0)
      y = f32[100] parameter(1)
      a = f32[64] sine(x)
      t = token[] after-all()
      o = token[] outfeed(a, t), outfeed_shape=f32[64]
      i = ((f32[100]), token[]) infeed(o)
      f = (f32[100]) get-tuple-element(i), index=0
      v = f32[100] get-tuple-element(f), index=0
      b = f32[100] sine(v)
      c = f32[100] sine(y)
      ROOT r = (f32[100], f32[100]) tuple(b, c))");
  const auto parsed = Parse(module);
  GenericContext context({}, Gpu());
  Fusion().Run(*parsed, context);
  Schedule().Run(*parsed, context);
  HorizontalFusion().Run(*parsed, context);
  hlo::VerifyModule(*parsed);
  bool has_sent = false;
  for (const auto& i : parsed->entry()->instructions()) {
    has_sent |= i->Is(hlo::Opcode::kOutfeed);
    const bool makes_sent = !i->users().empty() && i->users()[0]->Is(hlo::Opcode::kOutfeed);
    EXPECT_FALSE(makes_sent && HeroOf(*i).kind == KernelKind::kSideBySide);
  }
  EXPECT_TRUE(has_sent);
}

TEST(HorizontalFusion, ControlEdgesKeepKernelsApart) {
  const std::string text = R"(x = f32[64] parameter(0)
      y = f32[100] parameter(1)
      a = f32[64] sine(x)
      b = f32[100] sine(y){}
      ROOT r = (f32[64], f32[100]) tuple(a, b))";
  EXPECT_THAT(Join(Module(fmt::format(fmt::runtime(text), ""))).joined, ElementsAre(2));
  EXPECT_THAT(Join(Module(fmt::format(fmt::runtime(text), ", control-predecessors={a}"))).joined, IsEmpty());
}

TEST(HorizontalFusion, BodiesOfLoopsToo) {
  const std::string text = Module(R"(x = f32[64] parameter(0)
      y = f32[100] parameter(1)
      n = s32[] constant(3)
      t = (s32[], f32[64], f32[100]) tuple(n, x, y)
      ROOT w = (s32[], f32[64], f32[100]) while(t), condition=test, body=body)",
                                  R"(test { p = (s32[], f32[64], f32[100]) parameter(0)
         n = s32[] get-tuple-element(p), index=0
         zero = s32[] constant(0)
         ROOT c = pred[] compare(n, zero), direction=GT }
  body { p = (s32[], f32[64], f32[100]) parameter(0)
         n = s32[] get-tuple-element(p), index=0
         x = f32[64] get-tuple-element(p), index=1
         y = f32[100] get-tuple-element(p), index=2
         one = s32[] constant(1)
         m = s32[] subtract(n, one)
         a = f32[64] sine(x)
         b = f32[100] sine(y)
         ROOT t = (s32[], f32[64], f32[100]) tuple(m, a, b) })");
  const Result result = Join(text);
  EXPECT_THAT(result.joined, ElementsAre(2));
  EXPECT_EQ(result.copies, Join(text, DeviceSpec()).copies);
}

// Products that wait to be summed up together would all live at once: no more of them than a megabyte.
TEST(HorizontalFusion, MemoryStaysAsItWas) {
  constexpr int64_t kArrays = 12;
  std::string text = "w = f32[1,256] parameter(0)\n z = f32[] constant(0)\n", results, shapes;
  for (int i = 0; i < kArrays; ++i) {
    text += fmt::format(R"(x{0} = f32[300,1] parameter({1})
      g{0} = f32[300,256] dot(x{0}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
      u{0} = f32[300] reduce(g{0}, z), dimensions={{1}}, to_apply=add
      )",
                        i, i + 1);
    results += fmt::format("{}u{}", i == 0 ? "" : ", ", i);
    shapes += std::string(i == 0 ? "" : ", ") + "f32[300]";
  }
  const std::string module = Module(text + fmt::format("ROOT r = ({}) tuple({})", shapes, results));
  const Result result = Join(module, Gpu(), {}, /*fuse=*/false);
  EXPECT_LE(result.grown, 1 << 20);
  EXPECT_GT(result.grown, 0);
  EXPECT_THAT(result.joined, testing::Each(testing::Lt(6u)));
}

// Conversions of parameters that nobody changes run once, by themselves.
TEST(HorizontalFusion, ConstantWorkIsLeftAlone) {
  CompileOptions options;
  options.constant_parameters = {0, 1};
  const std::string text = Module(R"(x = f32[64] parameter(0)
      y = f32[100] parameter(1)
      u = f32[64] parameter(2)
      v = f32[100] parameter(3)
      a = f32[64] sine(x)
      b = f32[100] sine(y)
      c = f32[64] cosine(u)
      d = f32[100] cosine(v)
      ROOT r = (f32[64], f32[100], f32[64], f32[100]) tuple(a, b, c, d))");
  EXPECT_THAT(Join(text).joined, ElementsAre(2, 2));
  EXPECT_THAT(Join(text, Gpu(), options).joined, ElementsAre(2));
}

TEST(HorizontalFusion, UpdatesOfPartsAreLeftAlone) {
  EXPECT_THAT(Join(Module(R"(x = f32[64] parameter(0)
      y = f32[100] parameter(1)
      u = f32[8] parameter(2)
      i = s32[] parameter(3)
      a = f32[64] dynamic-update-slice(x, u, i)
      b = f32[100] dynamic-update-slice(y, u, i)
      ROOT r = (f32[64], f32[100]) tuple(a, b))"))
                  .joined,
              IsEmpty());
}

}  // namespace
}  // namespace hlorun::passes
