#include "backends/opencl/runtime/native_call.h"

#include <dlfcn.h>

#include <utility>

#include "backends/opencl/runtime/cl_error.h"
#include "backends/opencl/runtime/launch_table.h"
#include "hlo/error.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace hlorun::opencl {

LoadedLibrary::LoadedLibrary(NativeFunction function) {
  Dl_info library = {};
  if (dladdr(reinterpret_cast<const void*>(function), &library) == 0 || library.dli_fname == nullptr) return;
  handle_ = dlopen(library.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (handle_ == nullptr)
    Fail(ErrorCode::kInternal, "cannot hold the library of compiled kernels {}", library.dli_fname);
}

LoadedLibrary::~LoadedLibrary() {
  if (handle_ != nullptr) dlclose(handle_);
}

LoadedLibrary::LoadedLibrary(LoadedLibrary&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}

LoadedLibrary& LoadedLibrary::operator=(LoadedLibrary&& other) noexcept {
  std::swap(handle_, other.handle_);
  return *this;
}

NativeFunction FunctionOf(const cl::Kernel& kernel, const cl::CommandQueue& queue) {
  LaunchTable table(0, LaunchTable::kWhere);
  CheckCl(clSetKernelArgSVMPointer(kernel(), 0, table.data()), "setting a kernel's table");
  constexpr size_t kOne = 1;
  CheckCl(clEnqueueNDRangeKernel(queue(), kernel(), 1, nullptr, &kOne, &kOne, 0, nullptr, nullptr),
          "asking for a kernel's function");
  CheckCl(clFinish(queue()), "asking for a kernel's function");
  if (table.answer() == 0) Fail(ErrorCode::kInternal, "a compiled kernel did not say where its function lies");
  return reinterpret_cast<NativeFunction>(table.answer());
}

#if defined(__x86_64__)
namespace {
constexpr uint32_t kAsKernels = 0x9fc0;  // all exceptions masked; flush to zero, denormals are zero
}

KernelArithmetic::KernelArithmetic() : before_(_mm_getcsr()) { _mm_setcsr(kAsKernels); }
KernelArithmetic::~KernelArithmetic() { _mm_setcsr(before_); }
#else
KernelArithmetic::KernelArithmetic() = default;
KernelArithmetic::~KernelArithmetic() = default;
#endif

}  // namespace hlorun::opencl
