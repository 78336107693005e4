#include "backends/opencl/runtime/buffer_view.h"

#include "backends/opencl/runtime/cl_error.h"

namespace hlorun::opencl {

BufferView::BufferView(const DeviceContext& device, const DeviceMemory& memory) : bytes_(memory.bytes()) {
  if (memory.host() == nullptr) {
    array_ = {memory.buffer(), memory.offset()};
    return;
  }
  cl_int status = CL_SUCCESS;
  const cl_mem buffer = clCreateBuffer(device.context()(), CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                       static_cast<size_t>(bytes_), memory.host(), &status);
  CheckCl(status, "wrapping an array for a library");
  made_ = cl::Buffer(buffer);
  array_ = {buffer, 0};
}

void BufferView::ShowToHost(cl_command_queue queue) const {
  if (made_() == nullptr) return;
  cl_int status = CL_SUCCESS;
  void* const mapped = clEnqueueMapBuffer(queue, made_(), CL_FALSE, CL_MAP_READ, 0, static_cast<size_t>(bytes_), 0,
                                          nullptr, nullptr, &status);
  CheckCl(status, "showing a library's result to the host");
  CheckCl(clEnqueueUnmapMemObject(queue, made_(), mapped, 0, nullptr, nullptr),
          "showing a library's result to the host");
}

}  // namespace hlorun::opencl
