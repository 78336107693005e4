// Faults injected through HLORUN_FAULT, and signals: what was half done is gone, and the exit code says what happened.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "hlo/error.h"
#include "hlo/fault.h"
#include "tests/end_to_end/hlorun_command.h"

namespace hlorun {
namespace {

using ::testing::HasSubstr;
using testing_support::CommandResult;
using testing_support::FilesUnder;
using testing_support::Hlorun;
using testing_support::ReadAll;
using testing_support::RunCommand;
using testing_support::TemporaryFolder;

constexpr const char* kModule = R"(HloModule pair
ENTRY main {
  x = f32[4]{0} parameter(0)
  y = f32[4]{0} add(x, x)
  z = f32[4]{0} multiply(x, x)
  ROOT t = (f32[4], f32[4]) tuple(y, z)
}
)";

class FaultsTest : public ::testing::Test {
 protected:
  CommandResult RunWith(const std::string& fault) {
    return Hlorun("--json --cache_dir=" + cache_ + " --outputs=" + out_ + " " + module_, "HLORUN_FAULT=" + fault);
  }
  void ExpectTrouble(const std::string& fault, const std::vector<std::string>& texts) {
    SCOPED_TRACE(fault);
    testing_support::ExpectTrouble(RunWith(fault), texts);
    EXPECT_EQ(FilesUnder(out_), "");
  }
  // A run whose injected fault costs time only.
  void ExpectRuns(const std::string& fault, bool compiles) {
    const CommandResult result = RunWith(fault);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(nlohmann::json::parse(result.out)["kernels_compiled"] > 0, compiles) << fault;
  }

  const TemporaryFolder folder_;
  const std::string module_ = folder_.Write("pair.hlo", kModule), cache_ = folder_ / "cache", out_ = folder_ / "out";
};

TEST_F(FaultsTest, UnknownPointsAreErrors) {
  ExpectTrouble("frobnicate", {"there is no point \"frobnicate\"", "write_output"});
  ExpectTrouble("alloc:x", {"\"x\" is no number in alloc:x"});
  ExpectTrouble("alloc@one", {"\"one\" is no number"});
}

TEST_F(FaultsTest, PointsCountVisitsAndRanks) {
  ArmFaults("alloc:2,rank_fail@1", 0);
  EXPECT_FALSE(FaultHits(Fault::kAlloc));
  EXPECT_TRUE(FaultHits(Fault::kAlloc));
  EXPECT_FALSE(FaultHits(Fault::kAlloc));
  EXPECT_FALSE(FaultHits(Fault::kRankFail));
  ArmFaults("rank_fail@1", 1);
  EXPECT_FALSE(FaultHits(Fault::kAlloc));
  EXPECT_TRUE(FaultHits(Fault::kRankFail));
  ArmFaults("", 0);
  EXPECT_FALSE(FaultHits(Fault::kRankFail));
  EXPECT_THROW(ArmFaults("nothing", 0), Error);
}

TEST_F(FaultsTest, TheTableInTheDocumentsIsWhole) {
  const std::string page = ReadAll(HLORUN_SOURCE_DIR "/docs/faults.md");
  const std::string table = FaultTable();
  for (size_t at = 0; at < table.size(); at = table.find('\n', at) + 1) {
    const std::string name = table.substr(at, table.find(' ', at) - at);
    EXPECT_THAT(page, HasSubstr("`" + name + "`"));
  }
}

TEST_F(FaultsTest, AnAllocationThatFailsNamesTheArrayAndTheBytes) {
  ExpectTrouble("alloc:2", {"out of memory: ", " needs ", " bytes"});
}

TEST_F(FaultsTest, AFullDiskLeavesNoOutputs) {
  for (const char* fault : {"write_output", "write_output:2"})
    ExpectTrouble(fault, {"cannot write", "/out/", "No space left on device"});
}

TEST_F(FaultsTest, AKernelThatDoesNotBuildLeavesItsSourceAndLog) {
  const CommandResult result = RunWith("kernel_build");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("the OpenCL compiler refuses a program"));
  for (const char* kind : {"source: ", "log: "}) {
    const size_t at = result.err.find(kind);
    ASSERT_NE(at, std::string::npos) << result.err;
    const size_t begin = at + std::string(kind).size();
    EXPECT_THAT(ReadAll(result.err.substr(begin, result.err.find_first_of(",\n", begin) - begin)),
                HasSubstr("kernel_build"))
        << result.err;
  }
}

TEST_F(FaultsTest, TheKernelCacheIsRebuiltWhereItIsDamaged) {
  ExpectRuns("cache_write", true);  // one entry is not kept
  ExpectRuns("", true);
  ExpectRuns("", false);
  ExpectRuns("cache_read", true);  // damaged, removed, made anew
  ExpectRuns("", false);
  const CommandResult damage =
      RunCommand("for f in " + cache_ + "/binaries/*.bin; do printf x | dd of=$f bs=1 seek=100 conv=notrunc; done");
  ASSERT_EQ(damage.exit_code, 0) << damage.err;
  ExpectRuns("", true);
  ExpectRuns("", false);
}

// Each stage in which a signal may come, by the point that makes it last.
class SignalTest : public FaultsTest, public ::testing::WithParamInterface<std::tuple<const char*, const char*>> {};

TEST_P(SignalTest, LeavesNothingBehind) {
  const auto& [stage, signal] = GetParam();
  const std::string log = folder_ / "log";
  // The signal comes when the process has been in its slow stage for a while.
  const CommandResult result =
      RunCommand("HLORUN_FAULT=" + std::string(stage) + ":30 " HLORUN_BINARY " --no_cache --cache_dir=" + cache_ +
                 " --outputs=" + out_ + " " + module_ + " & pid=$!; sleep 1.5; kill -" + signal + " $pid; wait $pid");
  EXPECT_EQ(result.exit_code, std::string(signal) == "INT" ? 130 : 143) << result.err;
  EXPECT_LT(result.seconds, 10);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(FilesUnder(out_), "");
}

INSTANTIATE_TEST_SUITE_P(Stages, SignalTest,
                         ::testing::Combine(::testing::Values("compile_slow", "rank_slow", "write_slow"),
                                            ::testing::Values("INT", "TERM")),
                         [](const auto& p) { return std::string(std::get<0>(p.param)) + "_" + std::get<1>(p.param); });

}  // namespace
}  // namespace hlorun
