// --mesh, --in_shardings and --out_shardings; plans for several devices, saved and loaded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/end_to_end/hlorun_command.h"

namespace hlorun {
namespace {

using ::testing::HasSubstr;
using testing_support::CommandResult;
using testing_support::Hlorun;
using testing_support::HlorunRanks;
using testing_support::kAtOnceSeconds;
using testing_support::ReadAll;
using testing_support::TemporaryFolder;

// A row sum and a product; nothing is annotated.
constexpr const char* kProduct = R"(HloModule product
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
ENTRY main {
  x = f32[12,16] parameter(0)
  w = f32[16,8] parameter(1)
  y = f32[12,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  zero = f32[] constant(0)
  s = f32[8] reduce(y, zero), dimensions={0}, to_apply=add
  ROOT t = (f32[12,8], f32[8]) tuple(y, s)
}
)";

// The same for up to 12 rows.
constexpr const char* kRows = R"(HloModule rows
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
ENTRY main {
  x = f32[<=12,16] parameter(0)
  w = f32[16,8] parameter(1)
  y = f32[<=12,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  zero = f32[] constant(0)
  s = f32[8] reduce(y, zero), dimensions={0}, to_apply=add
  ROOT t = (f32[<=12,8], f32[8]) tuple(y, s)
}
)";

void ExpectRuns(const CommandResult& result) { EXPECT_EQ(result.exit_code, 0) << result.out << result.err; }

void ExpectRefused(const CommandResult& result, const std::string& why) {
  testing_support::ExpectTrouble(result, {why});
  EXPECT_LT(result.seconds, kAtOnceSeconds);
}

TEST(ShardingFlagsTest, AMeshAndShardingsOfParametersAndResults) {
  const TemporaryFolder folder;
  const std::string module = folder.Write("product.hlo", kProduct);
  const std::string flags =
      "--reference --normal=0,1 --mesh=data:2,model:2 '--in_shardings=[data,None];[None,model]' "
      "'--out_shardings=[data,model];[model]' --dump_to=" +
      folder / "dump" + " " + module;
  ExpectRuns(Hlorun("--devices=4 " + flags));
  const std::string text = ReadAll(folder / "dump/module_0000.product.after_optimizations.txt");
  EXPECT_THAT(text, HasSubstr("{(f32[6,16]{1,0}, f32[16,4]{1,0})->(f32[6,4]{1,0}, f32[4]{0})}"));
  EXPECT_THAT(text, HasSubstr("all-reduce"));
  ExpectRuns(HlorunRanks(2, flags));
  ExpectRuns(HlorunRanks(2, "--reference --normal=0,1 '--in_shardings={devices=[2,1]<=[2]}' " + module));
}

TEST(ShardingFlagsTest, AnEmptyPart) {
  const TemporaryFolder folder;
  const std::string module = folder.Write("rows.hlo", kRows);
  for (const char* rows : {"0", "1", "5", "12"}) {
    ExpectRuns(HlorunRanks(3, "--reference --normal=0,1 --mesh=data:3 '--in_shardings=[data]' --size=0:0=" +
                                  std::string(rows) + " " + module));
  }
}

TEST(ShardingFlagsTest, WhatDoesNotFitIsRefusedAtOnce) {
  const TemporaryFolder folder;
  const std::string module = folder.Write("product.hlo", kProduct);
  ExpectRefused(HlorunRanks(2, "--mesh=data:3 '--in_shardings=[data]' " + module),
                "is for 3 partitions, which 2 ranks cannot share evenly");
  ExpectRefused(Hlorun("--devices=2 --mesh=data:4 '--in_shardings=[data]' " + module), "is for 4 devices");
  ExpectRefused(Hlorun("--devices=4 --mesh=data:4 --num_partitions=2 '--in_shardings=[data]' " + module),
                "--mesh=data:4 has 4 devices, but --num_partitions is 2");
  ExpectRefused(HlorunRanks(2, "--mesh=data:2 '--in_shardings=[model]' " + module),
                "the mesh data:2 has no axis model");
  ExpectRefused(Hlorun("--devices=4 '--in_shardings={devices=[4,1]<=[4]};{devices=[2,1]<=[2]}' " + module),
                "is for 2 devices");
}

TEST(ShardingFlagsTest, PlansForSeveralDevicesAreSavedAndLoaded) {
  const TemporaryFolder folder;
  const std::string module = folder.Write("rows.hlo", kRows), plan = folder / "rows.plan";
  ExpectRuns(HlorunRanks(2, "--mesh=data:4 '--in_shardings=[data]' --compile_only --save_plan=" + plan + " " + module));
  // As many devices as it was made for, in every shape of job: the same results, and nothing is compiled.
  const std::string run = "--json --size=0:0=5 " + plan;
  std::string first;
  for (const CommandResult& result : {HlorunRanks(2, run), HlorunRanks(4, run), Hlorun("--devices=4 " + run)}) {
    ExpectRuns(result);
    EXPECT_THAT(result.out, HasSubstr("\"kernels_compiled\":0"));
    EXPECT_THAT(result.out, HasSubstr("f32[5,8]"));
    const size_t outputs = result.out.find("\"results\"");
    ASSERT_NE(outputs, std::string::npos) << result.out;
    const std::string checksums = result.out.substr(outputs, result.out.find(']', outputs) - outputs);
    if (first.empty()) first = checksums;
    EXPECT_EQ(checksums, first);
  }
  ExpectRuns(HlorunRanks(2, "--reference --size=0:0=5 " + plan));
  ExpectRefused(HlorunRanks(3, plan), "rows is for 4 devices (replica_count x num_partitions), the job has 3");
  ExpectRefused(Hlorun(plan), "rows is for 4 devices");
  ExpectRefused(HlorunRanks(2, "--mesh=data:2 " + plan), "is a saved plan: give --mesh to the run that saves it");
}

}  // namespace
}  // namespace hlorun
