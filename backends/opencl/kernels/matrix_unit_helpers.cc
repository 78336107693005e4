#include "backends/opencl/kernels/matrix_unit_helpers.h"

#include "backends/opencl/codegen/matrix_unit.h"
#include "backends/opencl/kernels/kernel_draft.h"

namespace hlorun::opencl {

std::vector<ir::Helper> UnitHelpers(std::initializer_list<std::string_view> names) {
  return HelpersNamed(kUnitFunctions, std::span(names.begin(), names.size()));
}

}  // namespace hlorun::opencl
