// Many sharded cases as one module: a kernel compiler is started once for all of them.
#pragma once

#include <memory>
#include <vector>

#include "tests/passes/spmd/op_cases.h"

namespace hlorun::passes {

// The parameters of all cases, one case behind the other; the result is a tuple of their results, in order. Shardings
// stay. All cases are for the same number of partitions.
std::unique_ptr<hlo::Module> Merge(const std::vector<ShardedCase>& cases);

}  // namespace hlorun::passes
