#include "backends/opencl/runtime/warm_up.h"

#include <sys/mman.h>

#include <algorithm>
#include <deque>

#include "backends/opencl/runtime/cl_error.h"

namespace hlorun::opencl {
namespace {

// Zero pages that take no memory until written; as large as the largest array.
class Scratch {
 public:
  explicit Scratch(int64_t bytes) : bytes_(static_cast<size_t>(std::max<int64_t>(bytes, 4096))) {
    data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data_ == MAP_FAILED)
      Fail(ErrorCode::kResourceExhausted, "no address space for {} bytes of warm-up scratch", bytes_);
  }
  ~Scratch() { munmap(data_, bytes_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void* data() const { return data_; }
  void Clear() {
    if (madvise(data_, bytes_, MADV_DONTNEED) != 0)
      Fail(ErrorCode::kInternal, "warm-up scratch of {} bytes cannot be cleared", bytes_);
  }

 private:
  size_t bytes_;
  void* data_;
};

void Launch(const cl::CommandQueue& queue, const cl::Kernel& kernel, const Grid& grid) {
  size_t global[3], local[3];
  for (size_t d = 0; d < 3; ++d) {
    local[d] = static_cast<size_t>(grid.local[d]);
    global[d] = static_cast<size_t>(grid.groups[d]) * local[d];
  }
  CheckCl(clEnqueueNDRangeKernel(queue(), kernel(), 3, nullptr, global, local, 0, nullptr, nullptr),
          "warming a kernel up");
}

}  // namespace

void WarmUp(const ProgramRequest& request, const cl::Program& program, const cl::Context& context,
            const cl::Device& device) {
  const cl::CommandQueue queue(context, device);
  // An argument's each: a kernel may read an index twice, and counts on it that nothing that it stores changes it.
  std::deque<Scratch> scratch;
  const auto scratch_of = [&](cl_uint argument) {
    while (scratch.size() <= argument) scratch.emplace_back(request.scratch_bytes);
    return scratch[argument].data();
  };
  std::vector<cl::Kernel> live;
  for (const KernelRequest& kernel : request.kernels) {
    const cl::Kernel& made = live.emplace_back(program, kernel.symbol.c_str());
    constexpr cl_int kZero = 0;
    const auto pointers = made.getInfo<CL_KERNEL_NUM_ARGS>() - kernel.integers;
    for (cl_uint i = 0; i < pointers; ++i) {
      const cl_int status = request.raw_pointers || !kernel.guarded
                                ? clSetKernelArgSVMPointer(made(), i, kernel.guarded ? nullptr : scratch_of(i))
                                : clSetKernelArg(made(), i, sizeof(cl_mem), nullptr);
      CheckCl(status, "setting a warm-up argument");
    }
    for (cl_uint i = 0; i < kernel.integers; ++i)
      CheckCl(clSetKernelArg(made(), pointers + i, sizeof(kZero), &kZero), "setting a warm-up argument");
    for (const Grid& variant : kernel.variants) Launch(queue, made, variant);
    if (kernel.guarded) continue;
    // What this kernel stored may be no index to the next one.
    CheckCl(clFinish(queue()), "warming a kernel up");
    for (Scratch& argument : scratch) argument.Clear();
  }
  CheckCl(clFinish(queue()), "warming kernels up");
}

}  // namespace hlorun::opencl
