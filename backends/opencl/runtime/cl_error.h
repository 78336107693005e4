// What OpenCL reports, as an Error.
#pragma once

#include <string>

#include "backends/opencl/runtime/cl.h"
#include "hlo/error.h"

namespace hlorun::opencl {

const char* StatusName(cl_int status);  // "CL_OUT_OF_RESOURCES"

// Throws Error "<doing>: <status>" with the code that fits: kResourceExhausted where memory ran out.
[[noreturn]] void FailCl(cl_int status, const std::string& doing);

inline void CheckCl(cl_int status, const char* doing) {
  if (status != CL_SUCCESS) FailCl(status, doing);
}

}  // namespace hlorun::opencl
