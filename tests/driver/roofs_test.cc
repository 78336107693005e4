// Steps of known work under a device of round numbers: 100 GFLOP/s, 10 GB/s read, 5 GB/s copied.
#include "driver/cli/roofs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hlorun::cli {
namespace {

DeviceSpec Device() {
  DeviceSpec device;
  device.compute_units = 2;
  device.l2_bytes = 1000;
  device.l3_bytes = 100'000;
  device.f32_gflops = 100;
  device.bandwidth_gbps = 5;
  device.launch_us = 1;
  device.cost_table = {
      {"memory_read_gbps", 10}, {"l2_gbps", 50},    {"l2_read_gbps", 100},       {"l3_gbps", 20},
      {"l3_read_gbps", 40},     {"f64_gflops", 50}, {"launch_and_finish_us", 4}, {"launch_by_team_us", 0.5}};
  return device;
}

StepTime Step(const std::string& label, double us, double flops, double bytes, double written = 0) {
  StepTime step{label, "", "kernel", 1000, 1000 + us, flops, bytes, written};
  return step;
}

TEST(Roofs, TheLargerBoundIsTheRoof) {
  const RoofTime product = RoofOf(Step("dot", 30, 3e6, 2e5, 1e4), Device());
  EXPECT_EQ(product.roof, Roof::kCompute);
  EXPECT_EQ(product.peak, "f32_gflops");
  EXPECT_DOUBLE_EQ(product.us, 30);
  // The same bytes and less of the arithmetic: 20 kB copied at 5 GB/s, 180 kB read at 10.
  const RoofTime sum = RoofOf(Step("sum", 30, 2e5, 2e5, 1e4), Device());
  EXPECT_EQ(sum.roof, Roof::kMemory);
  EXPECT_DOUBLE_EQ(sum.us, 4 + 18);
  EXPECT_EQ(RoofOf(Step("call", 30, 0, 0), Device()).roof, Roof::kUnknown);
}

TEST(Roofs, TheLevelIsTheOneThatHoldsTheBytes) {
  const auto level = [](double bytes) { return RoofOf(Step("x", 1, 0, bytes), Device()); };
  EXPECT_EQ(level(2000).roof, Roof::kL2);  // of two cores
  EXPECT_DOUBLE_EQ(level(2000).us, 0.02);
  EXPECT_EQ(level(2001).roof, Roof::kL3);
  EXPECT_EQ(level(100'001).roof, Roof::kMemory);
  // What is only written goes as copies do.
  EXPECT_DOUBLE_EQ(RoofOf(Step("fill", 1, 0, 1e6, 1e6), Device()).us, 200);
  // Levels that nobody measured are as slow as the next, and a read as a copy.
  DeviceSpec few = Device();
  few.cost_table.clear();
  EXPECT_EQ(RoofOf(Step("x", 1, 0, 2000), few).roof, Roof::kMemory);
  EXPECT_DOUBLE_EQ(RoofOf(Step("x", 1, 0, 2000), few).us, 0.4);
  few.bandwidth_gbps = few.f32_gflops = 0;
  EXPECT_EQ(RoofOf(Step("x", 1, 1e6, 2000), few).roof, Roof::kUnknown);
}

TEST(Roofs, ATypeIsMultipliedByTheFastestUnitThatIsThere) {
  StepTime step = Step("dot", 100, 1e7, 0);
  const auto peak = [&](ElementType type, const DeviceSpec& device) {
    step.arithmetic = type;
    return RoofOf(step, device).peak;
  };
  DeviceSpec device = Device();
  EXPECT_EQ(peak(ElementType::kF64, device), "f64_gflops");
  EXPECT_EQ(peak(ElementType::kBF16, device), "f32_gflops");
  device.cost_table["bf16_words_gflops"] = 200;
  EXPECT_EQ(peak(ElementType::kBF16, device), "bf16_words_gflops");
  device.cost_table["bf16_tiles_gflops"] = 1000;
  EXPECT_EQ(peak(ElementType::kBF16, device), "bf16_tiles_gflops");
  EXPECT_DOUBLE_EQ(RoofOf(step, device).us, 10);
  EXPECT_EQ(peak(ElementType::kS8, device), "f32_gflops");
}

TEST(Roofs, ProductsOfF32MayGoByTilesInParts) {
  DeviceSpec device = Device();
  device.cost_table["bf16_tiles_gflops"] = 1200;
  StepTime step = Step("dot", 100, 1e7, 0);
  EXPECT_EQ(RoofOf(step, device).peak, "f32_gflops");
  step.multiplies = true;
  EXPECT_EQ(RoofOf(step, device).peak, "f32_by_tiles_gflops");
  EXPECT_DOUBLE_EQ(RoofOf(step, device).us, 50);
  step.arithmetic = ElementType::kF64;
  EXPECT_EQ(RoofOf(step, device).peak, "f64_gflops");
  step.arithmetic = ElementType::kF32;
  device.cost_table["bf16_tiles_gflops"] = 300;
  EXPECT_EQ(RoofOf(step, device).peak, "f32_gflops");
}

TEST(Roofs, RowsGatherTheStepsOfALabelAndPartPacking) {
  StepTime packing = Step("dot", 5, 0, 1e5, 5e4);
  packing.packs = true;
  const Profile profile = ProfileOf(
      {packing, Step("dot", 20, 1e6, 1e4), Step("add", 3, 1, 1000, 500), Step("dot", 30, 1e6, 1e4)}, Device(), 0);
  ASSERT_EQ(profile.rows.size(), 3u);
  const ProfileRow& dot = profile.rows[0];
  EXPECT_EQ(dot.label, "dot");
  EXPECT_EQ(dot.calls, 2);
  EXPECT_DOUBLE_EQ(dot.us, 50);
  EXPECT_DOUBLE_EQ(dot.OfRoof().value(), 0.4);
  EXPECT_EQ(NameOf(dot), "f32");
  EXPECT_TRUE(profile.rows[1].packs);
  EXPECT_EQ(NameOf(profile.rows[2]), "L2");
}

TEST(Roofs, ThePartsSumUpToTheWhole) {
  StepTime packing = Step("dot", 5, 0, 1e5, 5e4);
  packing.packs = true;
  StepTime call = Step("call", 7, 0, 0);
  call.kind = "host";
  // Of 30 us: 20 at the roof, 4 for the launch. The short one takes no longer than its roof: no launch is left to name.
  const ProfileSummary s =
      ProfileOf({packing, Step("dot", 30, 2e6, 1e4), Step("sum", 100, 0, 8e5), Step("short", 1, 2e5, 0), call},
                Device(), 150)
          .summary;
  EXPECT_EQ(s.steps, 5);
  EXPECT_EQ(s.packing_steps, 1);
  EXPECT_DOUBLE_EQ(s.compute, 20 + 1);
  EXPECT_DOUBLE_EQ(s.memory, 80);
  EXPECT_DOUBLE_EQ(s.packing, 5);
  EXPECT_DOUBLE_EQ(s.launch, 4 + 4);
  EXPECT_DOUBLE_EQ(s.above, 6 + 16);
  EXPECT_DOUBLE_EQ(s.unknown, 7);
  EXPECT_DOUBLE_EQ(s.idle, 7);
  EXPECT_DOUBLE_EQ(s.total, 150);
  EXPECT_DOUBLE_EQ(s.compute + s.memory + s.packing + s.launch + s.above + s.unknown + s.idle, s.total);
}

TEST(Roofs, StepsOfATeamCostItsLaunch) {
  StepTime step = Step("sum", 1, 0, 1);
  step.by_team = true;
  EXPECT_DOUBLE_EQ(ProfileOf({step}, Device(), 0).summary.launch, 0.5);
  EXPECT_DOUBLE_EQ(ProfileOf({step}, Device(), 0).summary.idle, 0);  // nothing was timed
}

TEST(Roofs, LessWorkThanTheDefinitionIsAboveTheRoof) {
  const Profile profile = ProfileOf({Step("winograd", 10, 2e6, 0)}, Device(), 0);
  EXPECT_DOUBLE_EQ(profile.rows[0].OfRoof().value(), 2);
  EXPECT_DOUBLE_EQ(profile.summary.compute, 10);
}

}  // namespace
}  // namespace hlorun::cli
