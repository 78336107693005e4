// Single ops as modules, and all the ways to cut their operands and results.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hlo/module.h"

namespace hlorun::passes {

struct OpCase {
  std::string name;
  std::string text;      // an HLO module without shardings
  bool is_exact = true;  // on any device: nothing is rounded
};
const std::vector<OpCase>& OpCases();

// A case with shardings on its parameters and root.
struct ShardedCase {
  std::string name;
  std::shared_ptr<hlo::Module> module;
  int64_t partitions = 0;
  bool is_exact = true;
};
// Every `stride`-th of the sharded cases from number `first`, over 2, 3, 4 and 8 partitions; returns how many there are
// in all. At most `limit` for one op and number of partitions, spread evenly over their combinations.
int64_t ForEachShardedCase(int64_t first, int64_t stride, int64_t limit,
                           const std::function<void(const ShardedCase&)>& visit);

}  // namespace hlorun::passes
