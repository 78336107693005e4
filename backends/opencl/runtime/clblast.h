// CLBlast's matrix products, loaded when a plan first asks for them: hlorun neither links nor needs the library
// otherwise.
#pragma once

#include "backends/opencl/plan.h"
#include "backends/opencl/runtime/cl.h"

namespace hlorun::opencl {

// An array as CLBlast takes it.
struct ClblastArray {
  cl_mem buffer = nullptr;
  int64_t offset = 0;  // bytes
};

// Throws kNotFound, naming the package, where the library cannot be loaded.
void RequireClblast();

// Enqueues out = lhs * rhs. Thread-safe. The first product of a type and device compiles CLBlast's kernels (seconds).
void EnqueueClblastProduct(const LibraryThunk& product, const ClblastArray& lhs, const ClblastArray& rhs,
                           const ClblastArray& out, cl_command_queue queue);

}  // namespace hlorun::opencl
