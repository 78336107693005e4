// --bound: which dimensions of a module's parameters are bounded, as a user names them.
#pragma once

#include <string>
#include <vector>

#include "hlo/module.h"
#include "passes/dynamic/resize_parameters.h"

namespace hlorun {

// Exporters leave the names of dimensions in the module's attribute hlorun.symbols: "batch:0:0,length:1:1" is the name,
// the parameter leaf and its dimension.
struct DimensionName {
  std::string name;
  int64_t leaf = 0, dimension = 0;
};
std::vector<DimensionName> DimensionNames(const hlo::Module& module);

// Settings are "PARAM:DIM=N" (a parameter's number, HLO name or op_name) or "NAME=N" for a name that the exporter gave.
// Throws Error where a setting names nothing, or sizes cannot follow.
// The bound need not be the size for which the module was exported: everything that follows from it is resized.
void BoundModule(hlo::Module& module, const std::vector<std::string>& settings);

// The dimensions that settings name, with their bounds.
std::vector<passes::NewSize> BoundsOf(const hlo::Module& module, const std::vector<std::string>& settings);

void BoundDimensions(hlo::Module& module, const std::vector<passes::NewSize>& bounds);

}  // namespace hlorun
