// The LAPACK custom-calls that JAX emits for CPU (lapack_sgetrf_ffi and so on), computed by the system's LAPACK.
//
// The library is loaded at the first call and told to use one thread, so that results depend on nothing but the
// arguments. A matrix with a NaN or an infinity gives info = -4 where LAPACK might not end (eigenvalues, singular
// values).
#pragma once

#include <string>
#include <vector>

#include "hlo/custom_calls/host_call.h"

namespace hlorun::hlo {

// Empty for what is no LAPACK target. The function checks shapes before it calls.
HostFunction FindLapackRoutine(const std::string& target);
bool HasLapackRoutine(const std::string& target);
std::vector<std::string> LapackTargets();  // sorted

}  // namespace hlorun::hlo
