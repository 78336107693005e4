// --branches by name.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "passes/options.h"

namespace hlorun::cli {

// In the order of the enumeration.
inline const std::array<std::string, 4> kBranchStrategies = {"auto", "select", "predicate", "host"};

// Throws Error for any other name.
BranchStrategy BranchStrategyOf(std::string_view name);

}  // namespace hlorun::cli
