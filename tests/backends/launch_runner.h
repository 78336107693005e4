// Runs emitted launches on the first OpenCL device through plain pointers, without plan or runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/opencl/codegen/emit.h"
#include "backends/opencl/runtime/cl.h"

namespace hlorun::opencl {

class LaunchRunner {
 public:
  LaunchRunner();

  const DeviceSpec& spec() const { return spec_; }
  // With the CPU's matrix unit, in all that it multiplies here; nullopt: none, or none that this platform's kernels can
  // drive.
  std::optional<DeviceSpec> WithMatrixUnit() const;
  // Runs the launches in order and waits. Throws Error with the build log when a source does not compile.
  void Run(const std::vector<EmittedLaunch>& launches, const std::vector<void*>& operands,
           const std::vector<void*>& results, void* scratch);
  double build_seconds() const { return build_seconds_; }

 private:
  cl::Kernel& KernelOf(const std::string& source);

  cl::Device device_;
  cl::Context context_;
  cl::CommandQueue queue_;
  DeviceSpec spec_;
  std::map<std::string, cl::Kernel> kernels_;
  double build_seconds_ = 0;
};

}  // namespace hlorun::opencl
