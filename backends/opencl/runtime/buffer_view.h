// Device memory as a cl_mem, for libraries that take nothing else.
#pragma once

#include "backends/opencl/runtime/clblast.h"
#include "backends/opencl/runtime/device_context.h"
#include "backends/opencl/runtime/memory.h"

namespace hlorun::opencl {

// Where arrays are plain host pointers, a buffer over the same memory, made for one call; else the array's own.
class BufferView {
 public:
  BufferView(const DeviceContext& device, const DeviceMemory& memory);

  ClblastArray array() const { return array_; }
  // Enqueues what makes the device's writes visible through the host pointer.
  void ShowToHost(cl_command_queue queue) const;

 private:
  cl::Buffer made_;
  ClblastArray array_;
  int64_t bytes_ = 0;
};

}  // namespace hlorun::opencl
