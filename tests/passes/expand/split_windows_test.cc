// Windows that become stages, those that stay, and that nothing changes but the order of sums.
#include "passes/expand/split_windows.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/passes/equivalence.h"

namespace hlorun::passes {
namespace {

using testing::UnorderedElementsAre;

// A reduce-window of x: f32[`shape`] by `reducer` from `initial` on.
std::string WindowOf(const std::string& shape, const std::string& window, const std::string& reducer = "add",
                     const std::string& initial = "0", const std::string& type = "f32") {
  return fmt::format(R"(HloModule m
    reducer {{ a = {4}[] parameter(0)
              b = {4}[] parameter(1)
              ROOT c = {4}[] {0}(a, b) }}
    ENTRY e {{
      x = {4}[{1}] parameter(0)
      start = {4}[] constant({2})
      ROOT r = reduce-window(x, start), window={{{3}}}, to_apply=reducer
    }})",
                     reducer, shape, initial, window, type);
}

// The windows' elements after the pass, which keeps the values.
std::vector<int64_t> Stages(const std::string& text, const Tolerance& tolerance = kRounding) {
  SplitWindows pass;
  RunAndCompare(text, pass, tolerance);
  const auto module = RunPass(text, pass);
  std::vector<int64_t> elements;
  for (const auto& op : module->entry()->instructions()) {
    if (!op->Is(hlo::Opcode::kReduceWindow)) continue;
    elements.push_back(1);
    for (const auto& w : op->As<hlo::attr::Windowed>().window) elements.back() *= w.size;
  }
  return elements;
}

TEST(SplitWindows, OneDimensionAfterAnother) {
  EXPECT_THAT(Stages(WindowOf("2,60,70", "size=1x5x5 pad=0_0x2_2x2_2", "maximum", "-inf"), kBitwise),
              UnorderedElementsAre(5, 5));
  // What goes by strides goes first.
  EXPECT_THAT(Stages(WindowOf("2,120,70", "size=1x5x6 stride=1x2x1 pad=0_0x0_3x1_1")), UnorderedElementsAre(5, 6));
  EXPECT_THAT(Stages(WindowOf("20,40,50", "size=5x5x5 rhs_dilate=1x2x3")), UnorderedElementsAre(5, 5, 5));
}

TEST(SplitWindows, RunsAndTheirRest) {
  EXPECT_THAT(Stages(WindowOf("20,400", "size=1x100 pad=0_0x20_79")), UnorderedElementsAre(10, 10));
  EXPECT_THAT(Stages(WindowOf("20,400", "size=1x101 pad=0_0x50_50")), UnorderedElementsAre(10, 10, 1));
  EXPECT_THAT(Stages(WindowOf("400,20", "size=49x1 pad=0_48x0_0 rhs_dilate=2x1", "minimum", "inf"), kBitwise),
              UnorderedElementsAre(7, 7));
  // Each of two dimensions by runs.
  EXPECT_THAT(Stages(WindowOf("100,120", "size=36x36")), UnorderedElementsAre(6, 6, 6, 6));
}

TEST(SplitWindows, StartOnce) {
  EXPECT_THAT(Stages(WindowOf("20,400", "size=1x101 pad=0_0x60_50", "add", "3.5")), UnorderedElementsAre(10, 10, 1));
  EXPECT_THAT(Stages(WindowOf("2,60,70", "size=1x5x5 pad=0_0x4_4x4_4", "maximum", "0.5"), kBitwise),
              UnorderedElementsAre(5, 5));
}

// Of types without infinity, too.
TEST(SplitWindows, WhollyOutside) {
  for (const std::string type : {"f8e4m3fn", "f8e5m2", "bf16", "s8"}) {
    SCOPED_TRACE(type);
    EXPECT_THAT(Stages(WindowOf("60,70", "size=9x9 pad=20_4x4_30", "maximum", "-3", type), kBitwise),
                UnorderedElementsAre(9, 9));
  }
}

TEST(SplitWindows, OthersStay) {
  // Far more of them than the array has.
  EXPECT_THAT(Stages(WindowOf("4,4", "size=1x100000000 pad=0_0x99999999_0")), UnorderedElementsAre(100000000));

  EXPECT_THAT(Stages(WindowOf("2,300,300", "size=1x3x3 pad=0_0x1_1x1_1")), UnorderedElementsAre(9));
  // Each element is in one window.
  EXPECT_THAT(Stages(WindowOf("20,70,70,5", "size=1x7x7x1 stride=1x7x7x1")), UnorderedElementsAre(49));
  // Cumulative.
  EXPECT_THAT(Stages(WindowOf("20,400", "size=1x400 pad=0_0x399_0")), UnorderedElementsAre(400));
  // Small.
  EXPECT_THAT(Stages(WindowOf("10,10", "size=5x5")), UnorderedElementsAre(25));
  EXPECT_THAT(Stages(WindowOf("20,200", "size=1x64 lhs_dilate=1x2")), UnorderedElementsAre(64));
}

}  // namespace
}  // namespace hlorun::passes
