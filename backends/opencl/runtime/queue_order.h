// What one in-order queue waits for in another one.
#pragma once

#include "backends/opencl/runtime/cl.h"

namespace hlorun::opencl {

// The end of what `queue` holds by now; flushes it, so that others may wait for it. Throws Error.
cl::Event MarkEnd(cl_command_queue queue);
// What is enqueued from now on begins behind `event`. Throws Error.
void BeginBehind(cl_command_queue queue, const cl::Event& event);

}  // namespace hlorun::opencl
