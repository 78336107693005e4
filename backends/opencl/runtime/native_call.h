// Functions of compiled kernels, called by the host itself. A launch that waits for its end costs 0.4 us, most of it
// locks, where the platform runs kernels in the thread that enqueues them, and 20 where it does not; a call costs
// nothing to speak of. A kernel says where its function lies (program_text.h); the platform has compiled and loaded it.
#pragma once

#include <cstdint>

#include "backends/opencl/runtime/cl.h"

namespace hlorun::opencl {

// Takes the address of a LaunchTable. Of a kernel of one work-item, in the state of KernelArithmetic.
using NativeFunction = void (*)(const void* table);

// Holds on to the library that a function lies in: PoCL unloads those of kernels that it has not run for a while.
class LoadedLibrary {
 public:
  // Of none where the function is in none: one that a compiler wrote to memory lives as long as its program. Throws
  // Error (kInternal) where a library cannot be held.
  explicit LoadedLibrary(NativeFunction function);
  ~LoadedLibrary();
  LoadedLibrary(LoadedLibrary&& other) noexcept;
  LoadedLibrary& operator=(LoadedLibrary&& other) noexcept;

 private:
  void* handle_ = nullptr;
};

// The function behind `kernel`, a joined kernel of ProgramForm::native_calls: it runs once, on `queue`. Throws Error
// when the device refuses, or gives no answer.
NativeFunction FunctionOf(const cl::Kernel& kernel, const cl::CommandQueue& queue);

// While it lives, this thread computes as the device's kernels do (BuildOptionsOf): to nearest, denormals are zero.
class KernelArithmetic {
 public:
  KernelArithmetic();
  ~KernelArithmetic();
  KernelArithmetic(const KernelArithmetic&) = delete;
  KernelArithmetic& operator=(const KernelArithmetic&) = delete;

 private:
  [[maybe_unused]] uint32_t before_ = 0;
};

}  // namespace hlorun::opencl
