// hlorun --autotune: measures once, keeps what it found, and changes no bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/end_to_end/hlorun_command.h"

namespace hlorun {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing_support::CommandResult;
using testing_support::Hlorun;
using testing_support::HlorunRanks;
using testing_support::ReadAll;
using testing_support::TemporaryFolder;

// Two products of the same problem, one with a bias and a maximum fused into it, and a small one.
constexpr const char* kModule = R"(HloModule layers
ENTRY main {
  x = f32[160,160]{1,0} parameter(0)
  w = f32[160,160]{1,0} parameter(1)
  b = f32[160]{0} parameter(2)
  first = f32[160,160]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  wide = f32[160,160]{1,0} broadcast(b), dimensions={1}
  sum = f32[160,160]{1,0} add(first, wide)
  zero = f32[] constant(0)
  zeros = f32[160,160]{1,0} broadcast(zero), dimensions={}
  relu = f32[160,160]{1,0} maximum(sum, zeros)
  second = f32[160,160]{1,0} dot(relu, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  rows = f32[2,160]{1,0} slice(x), slice={[0:2], [0:160]}
  few = f32[2,160]{1,0} dot(rows, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT out = (f32[160,160]{1,0}, f32[2,160]{1,0}) tuple(second, few)
}
)";

// Cut over two devices.
constexpr const char* kSharded = R"(HloModule cut, num_partitions=2
ENTRY main {
  x = f32[320,160]{1,0} parameter(0), sharding={devices=[2,1]<=[2]}
  w = f32[160,160]{1,0} parameter(1), sharding={replicated}
  ROOT d = f32[320,160]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={devices=[2,1]<=[2]}
}
)";

class AutotuneTest : public ::testing::Test {
 protected:
  nlohmann::json Run(const std::string& arguments, int ranks = 1) {
    SCOPED_TRACE(arguments);
    const std::string all = "--json --cache_dir=" + (folder_ / "cache") + " " + arguments;
    const CommandResult result = ranks == 1 ? Hlorun(all) : HlorunRanks(ranks, all);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.exit_code == 0 ? nlohmann::json::parse(result.out) : nlohmann::json();
  }
  void ExpectTrouble(const std::string& arguments, const std::string& text) {
    SCOPED_TRACE(arguments);
    testing_support::ExpectTrouble(Hlorun("--cache_dir=" + (folder_ / "cache") + " " + arguments), {text, "hlorun: "});
  }
  const TemporaryFolder folder_;
  const std::string module_ = folder_.Write("layers.hlo", kModule);
};

TEST_F(AutotuneTest, MeasuresOnceAndChangesNoBit) {
  for (const std::string device_class : {"gpu", "cpu"}) {
    const std::string flags = "--device_class=" + device_class + " " + module_;
    const auto off = Run("--autotune=off --reference " + flags);
    EXPECT_EQ(off["schedules_measured"], 0);
    const auto first = Run("--autotune=quick --reference " + flags);
    EXPECT_GT(first["schedules_measured"], 1);
    EXPECT_LE(first["schedules_measured"], 12);  // one problem
    const auto second = Run("--autotune=quick --reference " + flags);
    EXPECT_EQ(second["schedules_measured"], 0);
    EXPECT_EQ(second["kernels_compiled"], 0);
    EXPECT_EQ(first["results"], off["results"]);
    EXPECT_EQ(second["results"], off["results"]);
    // By default a CPU is not measured, whatever class it plays.
    EXPECT_EQ(Run(flags)["schedules_measured"], 0);
  }
}

TEST_F(AutotuneTest, ASavedPlanMeasuresNothing) {
  const std::string plan = folder_ / "layers.plan";
  const auto saved = Run("--autotune=quick --device_class=gpu --save_plan=" + plan + " " + module_);
  EXPECT_GT(saved["schedules_measured"], 1);
  std::filesystem::remove_all(folder_ / "cache");
  const auto loaded = Run("--autotune=full --device_class=gpu " + plan);
  EXPECT_EQ(loaded["schedules_measured"], 0);
  EXPECT_EQ(loaded["kernels_compiled"], 0);
  EXPECT_EQ(loaded["results"], saved["results"]);
}

TEST_F(AutotuneTest, ChoicesCanBeWrittenAndRead) {
  const std::string file = folder_ / "tuning.json";
  const auto measured = Run("--autotune=quick --device_class=gpu --save_tuning=" + file + " " + module_);
  EXPECT_GT(measured["schedules_measured"], 1);
  std::filesystem::remove_all(folder_ / "cache");
  const auto read = Run("--autotune=quick --device_class=gpu --tuning=" + file + " " + module_);
  EXPECT_EQ(read["schedules_measured"], 0);
  EXPECT_EQ(read["results"], measured["results"]);
  const CommandResult explained =
      Hlorun("--explain --compile_only --device_class=gpu --tuning=" + file + " " + module_);
  EXPECT_EQ(explained.exit_code, 0) << explained.err;
  EXPECT_THAT(explained.out + explained.err, HasSubstr("tiled items="));

  ExpectTrouble("--device_class=gpu --tuning=" + (folder_ / "none.json") + " " + module_, "none.json");
  ExpectTrouble("--device_class=cpu --tuning=" + file + " " + module_, "was measured on another device");
  std::string text = ReadAll(file);
  const size_t at = text.find("\"depth\":");
  ASSERT_NE(at, std::string::npos);
  text.insert(at + 8, "99999");
  ExpectTrouble("--device_class=gpu --tuning=" + folder_.Write("bad.json", text) + " " + module_, "must be 1 to 128");
  ExpectTrouble("--autotune=off --save_tuning=" + file + " " + module_, "no schedule was measured");
  ExpectTrouble("--autotune=always " + module_, "--autotune");
}

TEST_F(AutotuneTest, TakesFromAFolderWhatIsForTheDevice) {
  const std::string shipped = folder_ / "shipped", small = " --device_class=gpu ";
  std::filesystem::create_directory(shipped);
  ExpectTrouble(small + "--tuning=" + shipped + " " + module_, "holds no *.json");
  Run("--autotune=quick --save_tuning=" + shipped + "/gpu.json" + small + module_);
  const auto explain = [&](const std::string& flags) {
    const CommandResult result = Hlorun("--explain --compile_only --tuning=" + shipped + flags + " " + module_);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out + result.err;
  };
  EXPECT_THAT(explain(small), HasSubstr("tiled items="));
  // There is no file for a device of this class: the rules choose.
  EXPECT_THAT(explain(" --device_class=cpu"), Not(HasSubstr("measured")));
  // Of two for the device the later counts.
  std::string other = ReadAll(shipped + "/gpu.json");
  const std::string depth = "\"depth\":";
  for (size_t at = other.find(depth); at != std::string::npos; at = other.find(depth, at + 1)) {
    other.replace(at + depth.size(), other.find_first_of(",}", at) - at - depth.size(), "4");
  }
  folder_.Write("shipped/later.json", other);
  EXPECT_THAT(explain(small), HasSubstr("depth=4"));
  folder_.Write("shipped/broken.json", "{");
  ExpectTrouble(small + "--tuning=" + shipped + " " + module_, "broken.json: not JSON");
}

TEST_F(AutotuneTest, ShippedFilesAreRead) {
  const std::string shipped = HLORUN_SOURCE_DIR "/tuning";
  EXPECT_EQ(Run("--tuning=" + shipped + " " + module_)["schedules_measured"], 0);
  // A file by itself must be for this device, and says that it is for another one at most.
  for (const auto& entry : std::filesystem::directory_iterator(shipped)) {
    if (entry.path().extension() != ".json") continue;
    const CommandResult alone = Hlorun("--compile_only --tuning=" + entry.path().string() + " " + module_);
    EXPECT_TRUE(alone.exit_code == 0 || alone.err.find("was measured on another device") != std::string::npos)
        << alone.err;
  }
}

TEST_F(AutotuneTest, RanksTakeTheFirstOnesChoice) {
  const std::string cut = folder_.Write("cut.hlo", kSharded);
  const auto off = Run("--device_class=gpu " + cut, 2);
  const auto tuned = Run("--autotune=quick --device_class=gpu " + cut, 2);
  EXPECT_GT(tuned["schedules_measured"], 1);
  EXPECT_EQ(tuned["results"], off["results"]);
  EXPECT_EQ(Run("--autotune=quick --device_class=gpu " + cut, 2)["schedules_measured"], 0);
}

}  // namespace
}  // namespace hlorun
