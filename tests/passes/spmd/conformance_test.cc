// A sample of the partitioner's conformance set; spmd_sweep runs all of it.
#include <gtest/gtest.h>

#include <map>

#include "tests/passes/equivalence.h"
#include "tests/passes/spmd/merged_cases.h"
#include "tests/passes/spmd/op_cases.h"
#include "tests/passes/spmd/partition_check.h"
#include "tests/passes/spmd/random_modules.h"

namespace hlorun::passes {
namespace {

TEST(SpmdConformance, SampledCasesEqualTheUnpartitionedProgram) {
  int64_t ran = 0;
  const int64_t all = ForEachShardedCase(7, 31, 200, [&](const ShardedCase& sharded) {
    ++ran;
    SCOPED_TRACE(sharded.name);
    EXPECT_EQ(PartitionAndCompare(*sharded.module, sharded.partitions, 1).difference, "");
  });
  EXPECT_GE(all, 2000);
  EXPECT_GE(ran, 200);
}

TEST(SpmdConformance, RandomProgramsWithRandomAnnotations) {
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    const int64_t partitions = 2 + static_cast<int64_t>(seed % 3) * (seed % 2 == 0 ? 2 : 1);
    SCOPED_TRACE(fmt::format("spmd_sweep show {} {}", seed, partitions));
    EXPECT_EQ(PartitionAndCompare(*Parse(RandomAnnotatedModule(seed, partitions)), partitions, seed).difference, "");
  }
}

// As sharded_cases runs them on devices.
TEST(SpmdConformance, ManyCasesAsOneProgram) {
  std::map<int64_t, std::vector<ShardedCase>> by_partitions;
  ForEachShardedCase(5, 611, 200, [&](const ShardedCase& sharded) {
    if (sharded.is_exact) by_partitions[sharded.partitions].push_back(sharded);
  });
  for (const auto& [partitions, cases] : by_partitions) {
    ASSERT_GE(cases.size(), 3u);
    const auto merged = Merge(cases);
    std::vector<hlo::Literal> arguments, expected;
    for (const ShardedCase& one : cases) {
      const auto own = IntegerArguments(*one.module, 1);
      for (hlo::Literal& result : WholeResults(*one.module, own)) expected.push_back(std::move(result));
      arguments.insert(arguments.end(), own.begin(), own.end());
    }
    EXPECT_TRUE(WholeResults(*merged, arguments) == expected);
    EXPECT_EQ(PartitionAndCompare(*merged, partitions, 1).difference, "") << partitions;
  }
}

// The comparison itself: a program that is cut wrongly must be seen.
TEST(SpmdConformance, AWrongProgramIsFound) {
  const auto right =
      Parse("HloModule m\nENTRY e { x = s32[8] parameter(0), sharding={devices=[2]<=[2]} ROOT r = s32[8] copy(x) }");
  EXPECT_EQ(PartitionAndCompare(*right, 2, 1).difference, "");
  const auto wrong = Parse(
      "HloModule m\nENTRY e { x = s32[8] parameter(0), sharding={devices=[2]<=[2]} p = u32[] partition-id() q = s32[] convert(p) b = s32[8] broadcast(q), dimensions={} ROOT r = s32[8] add(x, b) }");
  EXPECT_NE(PartitionAndCompare(*wrong, 2, 1).difference, "");
}

}  // namespace
}  // namespace hlorun::passes
