#include "driver/cli/branch_strategy.h"

#include <algorithm>

#include "hlo/error.h"

namespace hlorun::cli {

BranchStrategy BranchStrategyOf(std::string_view name) {
  const auto found = std::find(kBranchStrategies.begin(), kBranchStrategies.end(), name);
  if (found == kBranchStrategies.end()) Invalid("\"{}\" is none of auto, select, predicate, host", name);
  return static_cast<BranchStrategy>(found - kBranchStrategies.begin());
}

}  // namespace hlorun::cli
