// Modules without shardings under mpirun, and jobs of devices of two kinds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/end_to_end/hlorun_command.h"

namespace hlorun {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing_support::CommandResult;
using testing_support::Hlorun;
using testing_support::HlorunRanks;
using testing_support::ReadAll;
using testing_support::RunCommand;
using testing_support::TemporaryFolder;

// Two layers with a residual connection, wide enough that to cut it pays.
constexpr const char* kLayers = R"(
HloModule layers
ENTRY main {
  x = f32[512,256] parameter(0)
  w1 = f32[256,1024] parameter(1)
  w2 = f32[1024,256] parameter(2)
  h = f32[512,1024] dot(x, w1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[512,1024] tanh(h)
  y = f32[512,256] dot(t, w2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[512,256] add(x, y)
}
)";

// A loop that ends when floats say so, with a reduction over all devices in each turn.
constexpr const char* kUntilSmall = R"(
HloModule until_small, num_partitions=2
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
body {
  c = (f32[64], f32[], s32[]) parameter(0)
  x = f32[64] get-tuple-element(c), index=0
  n = s32[] get-tuple-element(c), index=2
  one = s32[] constant(1)
  next = s32[] add(n, one)
  s = f32[64] sine(x)
  zero = f32[] constant(0)
  squares = f32[64] multiply(s, s)
  norm = f32[] reduce(squares, zero), dimensions={0}, to_apply=sum
  ROOT r = (f32[64], f32[], s32[]) tuple(s, norm, next)
}
condition {
  c = (f32[64], f32[], s32[]) parameter(0)
  norm = f32[] get-tuple-element(c), index=1
  bound = f32[] constant(0.9)
  ROOT more = pred[] compare(norm, bound), direction=GT
}
ENTRY main {
  x = f32[64] parameter(0), sharding={devices=[2]<=[2]}
  large = f32[] constant(1000000)
  zero = s32[] constant(0)
  c = (f32[64], f32[], s32[]) tuple(x, large, zero)
  ROOT l = (f32[64], f32[], s32[]) while(c), condition=condition, body=body, sharding={{devices=[2]<=[2]}, {replicated}, {replicated}}
}
)";

TEST(AutoShardTest, AnUnannotatedModuleIsCutAndCorrect) {
  const TemporaryFolder folder;
  const std::string module = folder.Write("layers.hlo", kLayers);
  for (const int ranks : {2, 4}) {
    const CommandResult result =
        HlorunRanks(ranks, "--reference --normal=0,1,2 --save_sharded=" + folder / "sharded.hlo" + " " + module);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("hlorun: sharding: "));
    const std::string saved = ReadAll(folder / "sharded.hlo");
    EXPECT_THAT(saved, HasSubstr("num_partitions=" + std::to_string(ranks)));
    EXPECT_THAT(saved, HasSubstr("sharding={devices="));
    EXPECT_EQ(HlorunRanks(ranks, "--reference " + folder / "sharded.hlo").exit_code, 0) << "what was saved runs";
  }
}

TEST(AutoShardTest, OffReplicatesWithAWarning) {
  const TemporaryFolder folder;
  const CommandResult result = HlorunRanks(2, "--auto_shard=off " + folder.Write("layers.hlo", kLayers));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("each of the 2 ranks runs all of it"));
  EXPECT_THAT(result.err, Not(HasSubstr("hlorun: sharding: ")));
}

TEST(AutoShardTest, AMemoryLimitThatReplicationExceedsGivesAPlanThatFits) {
  const TemporaryFolder folder;
  const std::string module = folder.Write("layers.hlo", kLayers);
  // Whole: weights of 2 MiB and activations of 0.5 + 2 + 0.5 MiB.
  const CommandResult fits = HlorunRanks(2, "--reference --memory_limit=4000K " + module);
  EXPECT_EQ(fits.exit_code, 0) << fits.err;
  EXPECT_THAT(fits.err, HasSubstr("in all"));
  const CommandResult alone = Hlorun("--memory_limit=4000K " + module);
  testing_support::ExpectTrouble(alone, {"--memory_limit"});
  const CommandResult none = HlorunRanks(2, "--memory_limit=100K " + module);
  testing_support::ExpectTrouble(none, {"use more devices"});
}

// HLORUN_OTHER_OPENCL: the library of a second OpenCL platform for CPUs (Intel's libintelocl.so).
TEST(MixedDevicesTest, DevicesOfTwoKindsAgreeOnEveryBranch) {
  const char* library = std::getenv("HLORUN_OTHER_OPENCL");
  if (library == nullptr) GTEST_SKIP() << "HLORUN_OTHER_OPENCL names no second OpenCL platform's library";
  const TemporaryFolder folder;
  folder.Write("other.icd", std::string(library) + "\n");
  const std::string path = std::string(library).substr(0, std::string(library).rfind('/'));
  // A folder: the loader that comes with such a platform knows no files here.
  const std::string other = "env OCL_ICD_VENDORS=" + folder / "" + " LD_LIBRARY_PATH=" + path + " ";
  const std::string loop = folder.Write("until.hlo", kUntilSmall), layers = folder.Write("layers.hlo", kLayers);
  for (const std::string& arguments : {" --reference --normal=0 " + loop, " --reference --normal=0,1,2 " + layers}) {
    for (int seed = 0; seed < 3; ++seed) {
      const std::string rank = HLORUN_BINARY " --seed=" + std::to_string(seed) + arguments;
      const CommandResult result = RunCommand(testing_support::Mpirun(1) + rank + " : -n 1 " + other + rank);
      EXPECT_EQ(result.exit_code, 0) << result.err;
      EXPECT_THAT(result.err, Not(HasSubstr("differs")));
    }
  }
}

TEST(MixedDevicesTest, TheLoopAloneIsCorrectOnDevicesOfOneKind) {
  const TemporaryFolder folder;
  const CommandResult result = HlorunRanks(2, "--reference --normal=0 " + folder.Write("until.hlo", kUntilSmall));
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

}  // namespace
}  // namespace hlorun
