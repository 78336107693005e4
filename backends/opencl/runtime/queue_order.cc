#include "backends/opencl/runtime/queue_order.h"

#include "backends/opencl/runtime/cl_error.h"

namespace hlorun::opencl {

cl::Event MarkEnd(cl_command_queue queue) {
  cl_event marker = nullptr;
  CheckCl(clEnqueueMarkerWithWaitList(queue, 0, nullptr, &marker), "marking the queue");
  cl::Event end(marker);
  CheckCl(clFlush(queue), "flushing the queue");
  return end;
}

void BeginBehind(cl_command_queue queue, const cl::Event& event) {
  const cl_event awaited = event();
  CheckCl(clEnqueueBarrierWithWaitList(queue, 1, &awaited, nullptr), "letting a queue wait for another");
}

}  // namespace hlorun::opencl
