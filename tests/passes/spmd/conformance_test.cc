// A sample of the partitioner's conformance set; spmd_sweep runs all of it.
#include <gtest/gtest.h>

#include "tests/passes/equivalence.h"
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
