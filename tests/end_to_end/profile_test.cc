// hlorun --profile: each kernel's share of its roof, and where the time goes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/end_to_end/hlorun_command.h"

namespace hlorun {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing_support::CommandResult;
using testing_support::FilesUnder;
using testing_support::Hlorun;
using testing_support::HlorunRanks;
using testing_support::TemporaryFolder;

// A product whose right side is packed, and a sum over what it gives; both are results, so that neither is a part of
// the other's kernel.
constexpr const char* kModule = R"(HloModule layer
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY main {
  x = f32[1024,512]{1,0} parameter(0)
  w = f32[512,512]{1,0} parameter(1)
  product = f32[1024,512]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  zero = f32[] constant(0)
  sums = f32[1024]{0} reduce(product, zero), dimensions={1}, to_apply=add
  ROOT both = (f32[1024,512]{1,0}, f32[1024]{0}) tuple(product, sums)
}
)";

// So that nothing is measured and all numbers are known.
constexpr const char* kCosts = R"({"f32_gflops": 1000, "bandwidth_gbps": 100, "launch_us": 1})";

class ProfileTest : public ::testing::Test {
 protected:
  nlohmann::json Run(const std::string& arguments) {
    const CommandResult result = Hlorun("--json --profile --cache_dir=" + (folder_ / "cache") + " " + arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    err_ = result.err;
    return result.exit_code == 0 ? nlohmann::json::parse(result.out)["profile"] : nlohmann::json();
  }
  const TemporaryFolder folder_;
  const std::string module_ = folder_.Write("layer.hlo", kModule);
  const std::string costs_ = " --device_spec=" + folder_.Write("costs.json", kCosts) + " ";
  std::string err_;
};

TEST_F(ProfileTest, RowsAndSumsAreThoseOfTheTable) {
  const auto profile = Run("--iterations=3" + costs_ + module_);
  for (const char* text : {"roof", "Where ", "compute roof", "packing", "Roofs: f32 1000 GFLOP/s"})
    EXPECT_THAT(err_, HasSubstr(text));
  double shares = 0, us = 0;
  bool has_product = false, has_packing = false;
  for (const auto& row : profile["rows"]) {
    shares += row["share"].get<double>();
    us += row["us"].get<double>();
    EXPECT_THAT(err_, HasSubstr(row["label"].get<std::string>()));
    has_packing |= row["kind"] == "packing";
    if (row["flops"].get<double>() < 2.0 * 1024 * 512 * 512) continue;
    has_product = true;
    EXPECT_EQ(row["roof"], "f32");
    // 537 MFLOP at 1000 GFLOP/s.
    EXPECT_NEAR(row["of_roof"].get<double>() * row["us"].get<double>(), 537.4, 1);
  }
  EXPECT_TRUE(has_product);
  EXPECT_TRUE(has_packing);
  EXPECT_NEAR(shares, 1, 1e-3);
  const auto& s = profile["summary"];
  EXPECT_NEAR(us, s["total_us"].get<double>() - s["idle_us"].get<double>(), 0.1);
  double parts = 0;
  for (const char* part : {"compute_us", "memory_us", "packing_us", "launch_us", "above_us", "unknown_us", "idle_us"})
    parts += s[part].get<double>();
  EXPECT_NEAR(parts, s["total_us"].get<double>(), 0.1);
  EXPECT_GT(s["best_us"], 0);
  EXPECT_EQ(profile["roofs"]["f32_gflops"], 1000);
  EXPECT_THAT(FilesUnder(folder_ / "cache"), Not(HasSubstr("roofline")));
}

TEST_F(ProfileTest, TheRoofsAreMeasuredOnce) {
  const auto first = Run(module_);
  EXPECT_GT(first["roofs"]["f32_gflops"], 0);
  EXPECT_THAT(FilesUnder(folder_ / "cache"), HasSubstr("/roofline/"));
  EXPECT_EQ(Run(module_)["roofs"], first["roofs"]);
  EXPECT_NE(Run("--no_cache " + module_)["roofs"], first["roofs"]);
}

TEST_F(ProfileTest, ASavedPlanKnowsWhatPacks) {
  const std::string plan = folder_ / "layer.plan";
  const auto packing = [](const nlohmann::json& profile) { return profile["summary"]["packing_steps"].get<int>(); };
  const auto direct = Run("--save_plan=" + plan + costs_ + module_);
  EXPECT_EQ(packing(direct), 1);
  EXPECT_EQ(packing(Run(costs_ + plan)), 1);
}

TEST_F(ProfileTest, RanksPrintTheFirstOnesSteps) {
  const CommandResult result =
      HlorunRanks(2, "--profile --num_partitions=2 --cache_dir=" + (folder_ / "cache") + " " + module_);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("Where "));
  // The other waits meanwhile.
  EXPECT_THAT(FilesUnder(folder_ / "cache"), HasSubstr("/roofline/"));
}

TEST_F(ProfileTest, NothingRanSoNothingIsMeasured) {
  const auto profile = Run("--compile_only " + module_);
  EXPECT_TRUE(profile["rows"].empty());
  EXPECT_THAT(FilesUnder(folder_ / "cache"), Not(HasSubstr("roofline")));
}

}  // namespace
}  // namespace hlorun
