#include "backends/opencl/kernels/matrix_unit_helpers.h"

#include <algorithm>

#include "backends/opencl/codegen/matrix_unit.h"

namespace hlorun::opencl {

std::vector<ir::Helper> UnitHelpers(std::initializer_list<std::string_view> names) {
  std::vector<ir::Helper> helpers;
  for (const UnitFunction& function : kUnitFunctions) {
    if (std::find(names.begin(), names.end(), function.name) != names.end())
      helpers.push_back({std::string(function.name), function.source});
  }
  return helpers;
}

}  // namespace hlorun::opencl
