// Functions of the matrix unit (codegen/matrix_unit.h) as helpers of a kernel.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "backends/opencl/codegen/kernel_ir.h"

namespace hlorun::opencl {

// Those of these names, in the order in which they are defined.
std::vector<ir::Helper> UnitHelpers(std::initializer_list<std::string_view> names);

}  // namespace hlorun::opencl
