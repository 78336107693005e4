// Channel ids of collectives.
#pragma once

#include <cstdint>

#include "hlo/module.h"

namespace hlorun::passes::spmd {

// The first that no collective or transfer of the module has, at least 1.
int64_t FirstFreeChannel(const hlo::Module& module);

}  // namespace hlorun::passes::spmd
