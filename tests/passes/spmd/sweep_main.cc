// The whole conformance set of the partitioner.
//   spmd_sweep ops [STRIDE [FIRST [LIMIT]]]   each op x shardings of its operands and result
//   spmd_sweep random COUNT [SEED]            random programs with random annotations, on 2, 3, 4, 6 and 8 devices
//   spmd_sweep show SEED PARTITIONS           one of them, whole and partitioned
// Prints what differs and how many ran; exit 1 when anything differs.
#include <cstdio>
#include <cstdlib>
#include <map>

#include "hlo/error.h"
#include "tests/passes/equivalence.h"
#include "tests/passes/spmd/op_cases.h"
#include "tests/passes/spmd/partition_check.h"
#include "tests/passes/spmd/random_modules.h"

namespace hlorun::passes {
namespace {

std::string DifferenceOf(const hlo::Module& module, int64_t partitions, uint64_t seed) {
  try {
    return PartitionAndCompare(module, partitions, seed).difference;
  } catch (const std::exception& error) {
    return error.what();
  }
}

int SweepOps(int64_t stride, int64_t first, int64_t limit) {
  int64_t ran = 0, failed = 0;
  std::map<std::string, int64_t> shown;
  const int64_t all = ForEachShardedCase(first, stride, limit, [&](const ShardedCase& sharded) {
    ++ran;
    const std::string difference = DifferenceOf(*sharded.module, sharded.partitions, 1);
    if (difference.empty()) return;
    ++failed;
    const std::string op = sharded.name.substr(0, sharded.name.find('/'));
    if (++shown[op] <= 3) std::printf("DIFFERS %s: %s\n", sharded.name.c_str(), difference.c_str());
  });
  for (const auto& [op, count] : shown) std::printf("%s: %ld differ\n", op.c_str(), static_cast<long>(count));
  std::printf("%ld of %ld cases ran, %ld differ\n", static_cast<long>(ran), static_cast<long>(all),
              static_cast<long>(failed));
  return failed == 0 ? 0 : 1;
}

int SweepRandom(int64_t count, uint64_t seed) {
  static constexpr int64_t kPartitions[] = {2, 3, 4, 6, 8};
  int64_t failed = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t partitions = kPartitions[i % 5];
    const uint64_t own = seed + static_cast<uint64_t>(i);
    const std::string difference = DifferenceOf(*Parse(RandomAnnotatedModule(own, partitions)), partitions, own);
    if (difference.empty()) continue;
    if (++failed <= 10)
      std::printf("DIFFERS: spmd_sweep show %lu %ld: %s\n", static_cast<unsigned long>(own),
                  static_cast<long>(partitions), difference.c_str());
  }
  std::printf("%ld random modules ran, %ld differ\n", static_cast<long>(count), static_cast<long>(failed));
  return failed == 0 ? 0 : 1;
}

int Show(uint64_t seed, int64_t partitions) {
  const std::string text = RandomAnnotatedModule(seed, partitions);
  std::printf("%s\n", text.c_str());
  const PartitionOutcome outcome = PartitionAndCompare(*Parse(text), partitions, seed);
  std::printf("%s\n%s\n", outcome.text.c_str(), outcome.difference.c_str());
  return outcome.difference.empty() ? 0 : 1;
}

}  // namespace
}  // namespace hlorun::passes

int main(int argc, char** argv) {
  const auto number = [&](int i, int64_t otherwise) { return argc > i ? std::atoll(argv[i]) : otherwise; };
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "ops") return hlorun::passes::SweepOps(number(2, 1), number(3, 0), number(4, 200));
  if (mode == "random") return hlorun::passes::SweepRandom(number(2, 1000), static_cast<uint64_t>(number(3, 1)));
  if (mode == "show") return hlorun::passes::Show(static_cast<uint64_t>(number(2, 1)), number(3, 2));
  std::fprintf(stderr, "usage: spmd_sweep ops [STRIDE [FIRST [LIMIT]]] | random COUNT [SEED] | show SEED PARTITIONS\n");
  return 2;
}
