// Faults under mpirun: one clear message that names the first cause, its rank and host, exit code != 0, in time, and no
// process left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "tests/end_to_end/command.h"
#include "tests/end_to_end/npy_text.h"

namespace hlorun {
namespace {

using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using testing_support::CommandResult;
using testing_support::ProcessLives;
using testing_support::ReadAll;
using testing_support::RunCommand;
using testing_support::TemporaryFolder;

// From the fault to the job's end, as the user was promised.
constexpr double kEndSeconds = 10;

std::string Launcher(const std::string& mpi) {
  if (mpi == "mpich") return "mpiexec.mpich";
  return "mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none";
}

bool HasLauncher(const std::string& mpi) {
  return RunCommand("command -v mpi" + std::string(mpi == "mpich" ? "exec.mpich" : "run.openmpi")).exit_code == 0;
}

std::string AllReduce(int ranks, const std::string& groups) {
  return "HloModule all, num_partitions=" + std::to_string(ranks) + R"(
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY main {
  x = f32[4] parameter(0)
  ROOT y = f32[4] all-reduce(x), channel_id=1, use_global_device_ids=true, to_apply=add, replica_groups=)" +
         groups + "\n}\n";
}

std::string Everyone(int ranks) { return "[1," + std::to_string(ranks) + "]<=[" + std::to_string(ranks) + "]"; }

std::string Zeros(size_t floats) { return testing_support::NpyText(std::vector<float>(floats)); }

class MpiFaultsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasLauncher("openmpi")) GTEST_SKIP() << "no Open MPI";
  }

  CommandResult Mpirun(int ranks, const std::string& arguments, const std::string& environment = "",
                       const std::string& mpi = "openmpi") {
    return RunCommand(environment + " timeout -k 5 60 " + Launcher(mpi) + " -n " + std::to_string(ranks) +
                      " " HLORUN_BINARY " " + arguments);
  }

  // `regex` is in the only message of hlorun's own.
  void ExpectOneMessage(const CommandResult& result, const std::string& regex, double seconds = kEndSeconds) {
    EXPECT_NE(result.exit_code, 0);
    EXPECT_THAT(result.err, ContainsRegex(regex));
    EXPECT_LT(result.seconds, seconds) << result.err;
    size_t messages = 0;
    for (size_t at = result.err.find("hlorun: "); at != std::string::npos; at = result.err.find("hlorun: ", at + 1))
      ++messages;
    EXPECT_EQ(messages, 1u) << result.err;
    ExpectNobodyLives();
  }

  // Killed processes take a moment to go.
  void ExpectNobodyLives() {
    for (int i = 0; i < 30 && ProcessLives(folder_.path()); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_FALSE(ProcessLives(folder_.path()));
  }

  std::string Module(int ranks) { return folder_.Write("all.hlo", AllReduce(ranks, Everyone(ranks))); }
  std::string Outputs() const { return testing_support::FilesUnder(folder_ / "out"); }

  const TemporaryFolder folder_;
};

// --- bad input ---

TEST_F(MpiFaultsTest, AWrongNumberOfRanks) {
  ExpectOneMessage(Mpirun(3, Module(2)),
                   "hlorun: rank 0 on .*: all is for 2 devices .*the job has 3: run it with mpirun -n 2");
}

TEST_F(MpiFaultsTest, AGroupLargerThanTheJob) {
  const std::string module = folder_.Write("group.hlo", AllReduce(2, "{{0,1,2,3}}"));
  ExpectOneMessage(Mpirun(2, module),
                   "hlorun: rank 0 on .*group.hlo:7: error: .*replica_groups names 2, but the module has 2 devices");
}

constexpr const char* kPermute = R"(HloModule ring, num_partitions=3
ENTRY main {
  x = f32[4] parameter(0)
  ROOT y = f32[4] collective-permute(x), channel_id=1, source_target_pairs=)";

TEST_F(MpiFaultsTest, APermuteToARankThatIsMissing) {
  const std::string module = folder_.Write("ring.hlo", std::string(kPermute) + "{{0,1},{1,3}}\n}\n");
  ExpectOneMessage(
      Mpirun(3, module),
      "hlorun: rank 0 on .*ring.hlo:4: error: .*source_target_pairs names 3, but the module has 3 partitions");
}

TEST_F(MpiFaultsTest, ARankThatNoPairOfAPermuteNamesGetsZeros) {
  const std::string module = folder_.Write("ring.hlo", std::string(kPermute) + "{{0,1}}\n}\n");
  const CommandResult result = Mpirun(3, "--outputs=" + (folder_ / "out") + " " + module);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(ReadAll(folder_ / "out/rank_2/0.npy").substr(ReadAll(folder_ / "out/rank_2/0.npy").size() - 16),
            std::string(16, '\0'));
}

TEST_F(MpiFaultsTest, DifferentModules) {
  const std::string a = folder_.Write("a.hlo", AllReduce(2, Everyone(2))),
                    b = folder_.Write("b.hlo", AllReduce(2, "{{0},{1}}"));
  const CommandResult result =
      RunCommand(Launcher("openmpi") + " -n 1 " HLORUN_BINARY " " + a + " : -n 1 " HLORUN_BINARY " " + b);
  ExpectOneMessage(result, "hlorun: rank 1 on .*: the module differs from rank 0's: here \".* bytes, hash .*\", there");
}

TEST_F(MpiFaultsTest, DifferentFlags) {
  const std::string module = Module(2), prefix = Launcher("openmpi") + " -n 1 " HLORUN_BINARY " --iterations=3 " +
                                                 module + " : -n 1 " HLORUN_BINARY " ";
  ExpectOneMessage(RunCommand(prefix + "--iterations=4 " + module),
                   "hlorun: rank 1 on .*: the command line differs from rank 0's: here \"--iterations=4\", there "
                   "\"--iterations=3\"");
  ExpectOneMessage(RunCommand(prefix + "--frobnicate " + module), "hlorun: rank 1 on .*frobnicate");
}

TEST_F(MpiFaultsTest, BadFlagsOnEveryRankAreSaidOnce) {
  ExpectOneMessage(Mpirun(4, "--frobnicate x.hlo"), "hlorun: .*frobnicate");
}

TEST_F(MpiFaultsTest, BadInputOnOneRankOnly) {
  const std::string module = Module(2);
  folder_.Write("in/rank_0/0.npy", Zeros(4));
  folder_.Write("in/rank_1/0.npy", Zeros(3));
  ExpectOneMessage(Mpirun(2, "--inputs=" + (folder_ / "in") + " --outputs=" + (folder_ / "out") + " " + module),
                   "hlorun: rank 1 on .*: input 0 .%x. f32.4. from .*rank_1/0.npy: the array is float32.3., the module "
                   "wants f32.4.");
  EXPECT_EQ(Outputs(), "");
}

TEST_F(MpiFaultsTest, AFullDiskOnOneRankLeavesNoRanksOutputs) {
  ExpectOneMessage(Mpirun(3, "--outputs=" + (folder_ / "out") + " " + Module(3), "HLORUN_FAULT=write_output@1"),
                   "hlorun: rank 1 on .*: cannot write .*/out/rank_1/0.npy: No space left on device");
  EXPECT_EQ(Outputs(), "");
}

std::string BranchesThatDiffer(const std::string& array) {
  std::string text = R"(HloModule branch, num_partitions=2
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
talks { x = ARRAY parameter(0)
  ROOT y = ARRAY all-reduce(x), channel_id=1, use_global_device_ids=true, to_apply=add, replica_groups={{0,1}} }
silent { x = ARRAY parameter(0)
  ROOT y = ARRAY negate(x) }
ENTRY main {
  x = ARRAY parameter(0)
  p = u32[] partition-id()
  i = s32[] convert(p)
  r = ARRAY conditional(i, x, x), branch_computations={silent, talks}
  ROOT z = ARRAY all-reduce(r), channel_id=2, use_global_device_ids=true, to_apply=add, replica_groups={{0,1}}
}
)";
  for (size_t at; (at = text.find("ARRAY")) != std::string::npos;) text.replace(at, 5, array);
  return text;
}

TEST_F(MpiFaultsTest, BranchesThatDifferBetweenRanksDoNotHang) {
  const std::string module = folder_.Write("branch.hlo", BranchesThatDiffer("f32[4]"));
  const char* const kMessage =
      "hlorun: rank 0 on .*: all 2 ranks wait for each other: they do not run the same collectives";
  ExpectOneMessage(Mpirun(2, "--heartbeat=2 " + module), kMessage);
  const CommandResult in_process = RunCommand("timeout 60 " HLORUN_BINARY " --devices=2 " + module);
  ExpectOneMessage(in_process, "hlorun: .*all 2 devices wait for each other: they do not run the same collectives");
  // More than a slow network carries within the heartbeat.
  const std::string large = folder_.Write("large.hlo", BranchesThatDiffer("f32[8000000]"));
  ExpectOneMessage(Mpirun(2, "--heartbeat=2 " + large, "HLORUN_NODE_WINDOW=0"), kMessage);
}

TEST_F(MpiFaultsTest, EndingTheLauncherEndsAllRanksWithoutOutputs) {
  const CommandResult result = RunCommand("HLORUN_FAULT=write_slow:30 " + Launcher("openmpi") +
                                          " -n 2 " HLORUN_BINARY " --outputs=" + (folder_ / "out") + " " + Module(2) +
                                          " & pid=$!; sleep 3; kill -TERM $pid; wait $pid");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_LT(result.seconds, 3 + kEndSeconds);
  EXPECT_EQ(Outputs(), "");
  ExpectNobodyLives();
}

// --- another MPI's launcher ---

TEST_F(MpiFaultsTest, ALauncherWhosePluginIsMissing) {
  std::error_code error;
  std::filesystem::copy_file(HLORUN_BINARY, folder_ / "hlorun", error);
  ASSERT_FALSE(error);
  for (const std::string mpi : {"openmpi", "mpich"}) {
    if (!HasLauncher(mpi)) continue;
    const CommandResult result = RunCommand(Launcher(mpi) + " -n 2 " + (folder_ / "hlorun") + " " + Module(2));
    ExpectOneMessage(result, "hlorun: the launcher is " + mpi + "'s, but hlorun was built without it");
  }
}

TEST_F(MpiFaultsTest, ALauncherThatThisMpiDoesNotKnow) {
  // As a foreign launcher leaves it: PMI's variables, but no MPI of ours behind them.
  const CommandResult result = RunCommand("PMI_SIZE=4 PMI_RANK=0 " HLORUN_BINARY " " + Module(4));
  ExpectOneMessage(result, HasLauncher("mpich")
                               ? "hlorun: the launcher started 4 processes .PMI_SIZE., but mpich sees one"
                               : "hlorun: the launcher is mpich's, but hlorun was built without it");
}

TEST_F(MpiFaultsTest, Mpich) {
  if (!HasLauncher("mpich")) GTEST_SKIP() << "no MPICH";
  ExpectOneMessage(Mpirun(3, Module(2), "", "mpich"), "hlorun: rank 0 on .*: all is for 2 devices");
  ExpectOneMessage(Mpirun(2, "--heartbeat=2 " + Module(2), "HLORUN_FAULT=rank_stop@1", "mpich"),
                   "rank 1 on .* has been silent");
  const CommandResult killed = Mpirun(2, Module(2), "HLORUN_FAULT=rank_kill@1", "mpich");
  EXPECT_NE(killed.exit_code, 0);
  EXPECT_THAT(killed.err + killed.out, AnyOf(HasSubstr("KILLED BY SIGNAL: 9"), HasSubstr("EXIT CODE: 9")));
  ExpectNobodyLives();
}

// --- ranks that fail, at each size of job ---

class RankFaultsTest : public MpiFaultsTest, public ::testing::WithParamInterface<int> {
 protected:
  int ranks() const { return GetParam(); }
  std::string last() const { return std::to_string(ranks() - 1); }
  // Many ranks on few cores take long to start; that is not the fault's time.
  double limit() const { return kEndSeconds + 1.5 * ranks(); }
  CommandResult WithFault(const std::string& fault, const std::string& flags = "--heartbeat=2 --iterations=2") {
    return Mpirun(ranks(), "--outputs=" + (folder_ / "out") + " " + flags + " " + Module(ranks()),
                  "HLORUN_FAULT=" + fault);
  }
};

TEST_P(RankFaultsTest, Failing) {
  ExpectOneMessage(WithFault("rank_fail@" + last() + ":2"), "hlorun: rank " + last() + " on .*: HLORUN_FAULT=rank_fail",
                   limit());
  EXPECT_EQ(Outputs(), "");
}

TEST_P(RankFaultsTest, Stopped) {
  ExpectOneMessage(WithFault("rank_stop@" + last() + ":2"),
                   "hlorun: rank 0 on .*: rank " + last() + " on .* has been silent for ", limit());
  EXPECT_EQ(Outputs(), "");
}

TEST_P(RankFaultsTest, FirstRankStopped) {
  ExpectOneMessage(WithFault("rank_stop@0:2"), "hlorun: rank 1 on .*: rank 0 on .* has been silent for ", limit());
}

TEST_P(RankFaultsTest, Killed) {
  // Open MPI names the rank and its host itself.
  const CommandResult result = WithFault("rank_kill@" + last() + ":2");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_LT(result.seconds, limit());
  EXPECT_THAT(result.err, ContainsRegex("process rank " + last() + " with PID .* on node .* exited on signal 9"));
  EXPECT_EQ(Outputs(), "");
  ExpectNobodyLives();
}

TEST_P(RankFaultsTest, LeavingWithoutAWord) {
  const CommandResult result = WithFault("rank_exit@" + last() + ":2");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_LT(result.seconds, limit());
  EXPECT_THAT(result.err, HasSubstr("Exit code:    3"));
  ExpectNobodyLives();
}

TEST_P(RankFaultsTest, SlowIsNotDead) {
  if (ranks() > 4) GTEST_SKIP() << "nothing new with more ranks";
  const CommandResult result = WithFault("rank_slow@" + last() + ":3,compile_slow@0:3", "--heartbeat=1.5 --no_cache");
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

INSTANTIATE_TEST_SUITE_P(Ranks, RankFaultsTest, ::testing::Values(2, 3, 4, 8));

// --- ranks that fail while they exchange beside kernels ---

// Two sums of a megabyte, each beside a product.
std::string SumsBesideProducts(int ranks) {
  return "HloModule beside, num_partitions=" + std::to_string(ranks) + R"(
add { l = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT t = f32[] add(l, r) }
ENTRY main {
  x = f32[512,512] parameter(0)
  y = f32[512,512] parameter(1)
  s = f32[512,512] all-reduce(x), channel_id=1, use_global_device_ids=true, to_apply=add, replica_groups=)" +
         Everyone(ranks) + R"(
  d = f32[512,512] dot(y, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  k = f32[512,512] tanh(x)
  u = f32[512,512] all-reduce(k), channel_id=2, use_global_device_ids=true, to_apply=add, replica_groups=)" +
         Everyone(ranks) + R"(
  e = f32[512,512] dot(d, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  a = f32[512,512] add(s, u)
  ROOT b = f32[512,512] add(a, e)
})";
}

// How the ranks are joined: settings in front of the command.
class OverlapFaultsTest : public MpiFaultsTest, public ::testing::WithParamInterface<const char*> {
 protected:
  // Compiling the kernels is not the fault's time.
  void SetUp() override {
    MpiFaultsTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_EQ(WithFault("").exit_code, 0);
    std::filesystem::remove_all(folder_ / "out");
  }
  CommandResult WithFault(const std::string& fault, int ranks = 2) {
    const std::string module = folder_.Write("beside.hlo", SumsBesideProducts(ranks));
    return Mpirun(ranks, "--heartbeat=2 --iterations=2 --outputs=" + (folder_ / "out") + " " + module,
                  std::string(GetParam()) + " HLORUN_FAULT=" + fault);
  }
  // An exchange of the first run, and one of the second beside what the first left.
  static constexpr const char* kVisits[] = {"1", "4"};
};

TEST_P(OverlapFaultsTest, Failing) {
  for (const std::string visit : kVisits) {
    ExpectOneMessage(WithFault("exchange_fail@1:" + visit), "hlorun: rank 1 on .*: .*HLORUN_FAULT=exchange_fail");
    EXPECT_EQ(Outputs(), "");
  }
}

TEST_P(OverlapFaultsTest, FailingOfTheThreadThatComputes) {
  const CommandResult result = WithFault("await_fail@1,exchange_slow@0:1");
  ExpectOneMessage(result, "hlorun: rank 1 on .*: .*HLORUN_FAULT=await_fail");
  EXPECT_EQ(Outputs(), "");
}

TEST_P(OverlapFaultsTest, KilledAndStopped) {
  const CommandResult killed = WithFault("exchange_kill@1:2");
  EXPECT_NE(killed.exit_code, 0);
  EXPECT_LT(killed.seconds, kEndSeconds);
  EXPECT_THAT(killed.err, ContainsRegex("process rank 1 with PID .* on node .* exited on signal 9"));
  ExpectNobodyLives();
  ExpectOneMessage(WithFault("exchange_stop@1:2"), "hlorun: rank 0 on .*: rank 1 on .* has been silent for ");
  EXPECT_EQ(Outputs(), "");
}

TEST_P(OverlapFaultsTest, LateIsNotDead) {
  ASSERT_EQ(WithFault("").exit_code, 0);
  const std::string wanted = ReadAll(folder_ / "out/rank_1/0.npy");
  const CommandResult late = WithFault("exchange_slow@1:0.7");
  EXPECT_EQ(late.exit_code, 0) << late.err;
  EXPECT_TRUE(ReadAll(folder_ / "out/rank_1/0.npy") == wanted);
}

INSTANTIATE_TEST_SUITE_P(Links, OverlapFaultsTest,
                         ::testing::Values("HLORUN_OVERLAP=1", "HLORUN_OVERLAP=1 HLORUN_NODE_WINDOW=0",
                                           "HLORUN_TIMED_LINK=100,0.2"),
                         [](const auto& info) {
                           const std::string link = info.param;
                           return link.find("TIMED") != std::string::npos    ? "timed"
                                  : link.find("WINDOW") != std::string::npos ? "messages"
                                                                             : "window";
                         });

TEST_F(MpiFaultsTest, AnExchangeThatFailsInProcess) {
  const std::string module = folder_.Write("beside.hlo", SumsBesideProducts(3));
  for (const std::string fault : {"exchange_fail:2", "await_fail"}) {
    const CommandResult result = RunCommand("HLORUN_TIMED_LINK=100,0.05 HLORUN_FAULT=" + fault +
                                            " timeout 60 " HLORUN_BINARY " --devices=3 " + module);
    ExpectOneMessage(result, "hlorun: .*HLORUN_FAULT=" + fault.substr(0, fault.find(':')));
  }
}

TEST_F(MpiFaultsTest, StoppedBeforeTheJobAndAfterItsWork) {
  ExpectOneMessage(Mpirun(2, "--heartbeat=1.5 " + Module(2), "HLORUN_FAULT=start_stop@1"),
                   "hlorun: .*: MPI does not start");
  ExpectOneMessage(Mpirun(2, "--heartbeat=1.5 " + Module(2), "HLORUN_FAULT=finish_stop@1"),
                   "rank 1 on .* has been silent");
  EXPECT_EQ(Mpirun(2, "--heartbeat=3 " + Module(2), "HLORUN_FAULT=start_slow@1:4").exit_code, 0);
}

}  // namespace
}  // namespace hlorun
