#include "tests/backends/launch_runner.h"

#include <chrono>

#include "backends/opencl/runtime/host_cpu.h"
#include "backends/opencl/runtime/quirks.h"
#include "hlo/error.h"

namespace hlorun::opencl {

LaunchRunner::LaunchRunner() {
  NameCpuToPlatforms();
  std::vector<cl::Platform> platforms;
  cl::Platform::get(&platforms);
  std::vector<cl::Device> devices;
  platforms.at(0).getDevices(CL_DEVICE_TYPE_ALL, &devices);
  device_ = devices.at(0);
  context_ = cl::Context(device_);
  queue_ = cl::CommandQueue(context_, device_);
  spec_.platform = platforms.at(0).getInfo<CL_PLATFORM_NAME>();
  spec_.compute_units = device_.getInfo<CL_DEVICE_MAX_COMPUTE_UNITS>();
  spec_.has_f64 = device_.getInfo<CL_DEVICE_DOUBLE_FP_CONFIG>() != 0;
}

std::optional<DeviceSpec> LaunchRunner::WithMatrixUnit() const {
  const bool has_unit = ThisCpu().Has("amxbf16") && ThisCpu().Has("amxint8");
  if (!has_unit || !QuirksOf(spec_.platform, CL_DEVICE_TYPE_CPU).matrix_unit) return std::nullopt;
  DeviceSpec spec = spec_;
  spec.has_bf16_tiles = spec.has_s8_tiles = true;
  return spec;
}

cl::Kernel& LaunchRunner::KernelOf(const std::string& source) {
  const auto found = kernels_.find(source);
  if (found != kernels_.end()) return found->second;
  const auto start = std::chrono::steady_clock::now();
  cl::Program program(context_, source);
  try {
    program.build(device_, "-cl-std=CL1.2 -cl-denorms-are-zero -cl-mad-enable");
  } catch (const cl::Error&) {
    Fail(ErrorCode::kInternal, "kernel does not build: {}\n{}", program.getBuildInfo<CL_PROGRAM_BUILD_LOG>(device_),
         source);
  }
  cl::Kernel kernel(program, kKernelName);
  build_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return kernels_.emplace(source, std::move(kernel)).first->second;
}

void LaunchRunner::Run(const std::vector<EmittedLaunch>& launches, const std::vector<void*>& operands,
                       const std::vector<void*>& results, void* scratch) {
  for (const EmittedLaunch& launch : launches) {
    cl::Kernel& kernel = KernelOf(launch.source);
    for (size_t i = 0; i < launch.arguments.size(); ++i) {
      const ArgumentRef& argument = launch.arguments[i];
      const auto number = static_cast<size_t>(argument.number);
      void* base = argument.kind == ArgumentRef::Kind::kOperand  ? operands.at(number)
                   : argument.kind == ArgumentRef::Kind::kResult ? results.at(number)
                                                                 : scratch;
      void* address = static_cast<std::byte*>(base) + argument.offset;
      if (clSetKernelArgSVMPointer(kernel(), static_cast<cl_uint>(i), address) != CL_SUCCESS) {
        Fail(ErrorCode::kInternal, "argument {} of a kernel was refused", i);
      }
    }
    const auto& groups = launch.grid.groups;
    const auto& local = launch.grid.local;
    const auto size = [](int64_t x) { return static_cast<size_t>(x); };
    queue_.enqueueNDRangeKernel(
        kernel, cl::NullRange,
        cl::NDRange(size(groups[0] * local[0]), size(groups[1] * local[1]), size(groups[2] * local[2])),
        cl::NDRange(size(local[0]), size(local[1]), size(local[2])));
  }
  queue_.finish();
}

}  // namespace hlorun::opencl
