// One executable for each bucket of sizes.
#pragma once

#include <functional>
#include <memory>

#include "hlorun/hlorun.h"

namespace hlorun {

// `compile` outlives the executable. Throws Error where the module names no sizes, or they cannot be followed.
std::shared_ptr<BucketedExecutable> MakeBucketedExecutable(
    const Module& module, const BucketOptions& options,
    std::function<std::shared_ptr<Executable>(const Module&)> compile);

}  // namespace hlorun
