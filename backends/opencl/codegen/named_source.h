// A function of OpenCL C that kernels call by name (ir::Helper), in a table.
#pragma once

#include <string_view>

namespace hlorun::opencl {

struct NamedSource {
  std::string_view name;
  const char* source;
};

}  // namespace hlorun::opencl
