// Which numbers CLBlast's kernels are compiled with, of a device and a type: CLBlast keeps one set for a whole process.
#pragma once

#include "backends/opencl/clblast_numbers.h"
#include "backends/opencl/runtime/cl.h"
#include "hlo/element_type.h"

namespace hlorun::opencl {

// From now on products of `type` on `device` run by `numbers`. Where that changes something CLBlast compiles its
// kernels anew at the next product. Not thread-safe: the caller holds what orders products. Throws Error where the
// library has no way to change them.
void UseClblastNumbers(cl_device_id device, hlo::ElementType type, const ClblastNumbers& numbers);

// What CLBlast itself says that it compiles them with.
ClblastNumbers ClblastNumbersInUse(cl_device_id device, hlo::ElementType type);

}  // namespace hlorun::opencl
