// Compiles what the emitters give for whole entry computations, all cases in one program, runs them on the default
// OpenCL platform, and compares with the evaluator.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/opencl/codegen/emit.h"
#include "hlo/module.h"

namespace hlorun::opencl {

class KernelRunner {
 public:
  explicit KernelRunner(DeviceSpec device);
  ~KernelRunner();

  // An HLO module (or a bare entry computation). Each instruction of the entry that needs a kernel gets its own.
  void Add(const std::string& name, const std::string& hlo_text);
  void AddModule(const std::string& name, std::unique_ptr<hlo::Module> module);
  // Builds, runs and compares all of them; each failure is a test failure that names the case. `in_place`: results
  // share operands where the kernel model allows it.
  void RunAll(bool in_place = false);
  const DeviceSpec& device() const { return device_; }

 private:
  struct Case;
  DeviceSpec device_;
  std::vector<std::unique_ptr<Case>> cases_;
};

// A CPU-like spec, and the same made GPU class.
DeviceSpec CpuSpec();
DeviceSpec GpuSpec();

}  // namespace hlorun::opencl
