// CLBlast's matrix products.
#pragma once

#include "backends/opencl/plan.h"
#include "backends/opencl/runtime/cl.h"

namespace hlorun::opencl {

// An array as CLBlast takes it.
struct ClblastArray {
  cl_mem buffer = nullptr;
  int64_t offset = 0;  // bytes
};

// Enqueues out = lhs * rhs. Thread-safe. The first product of a type and device compiles CLBlast's kernels (seconds),
// and so does each that is compiled with other numbers than the one before it. Throws Error where the library cannot be
// loaded, or refuses the product.
void EnqueueClblastProduct(const LibraryThunk& product, const ClblastArray& lhs, const ClblastArray& rhs,
                           const ClblastArray& out, cl_command_queue queue);

}  // namespace hlorun::opencl
