// A vector loop as code over floatN values: the CPU class half of the schedule.
#pragma once

#include "backends/opencl/codegen/kernel_ir.h"

namespace hlorun::opencl {

// `loop` is a kFor with role kVector. The result has serial loops only. A loop that cannot be widened (control flow or
// a stored place that depends on the lane in a way vectors cannot say) becomes a serial one.
ir::Stmt WidenVectorLoop(const ir::Stmt& loop);

}  // namespace hlorun::opencl
