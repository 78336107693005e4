// For passes that run apart from a compilation.
#pragma once

#include "hlo/device_spec.h"
#include "passes/kernel_model.h"
#include "passes/options.h"
#include "passes/pass.h"

namespace hlorun::passes {

struct GenericContextParts {
  CompileOptions own_options;
  DeviceSpec own_device;
};

// A context of its own options and device: the defaults, where nothing else is said. `kernels` must outlive it.
class GenericContext : private GenericContextParts, public PassContext {
 public:
  explicit GenericContext(const CompileOptions& options = {}, const DeviceSpec& device = {},
                          const KernelModel& kernels = AnyKernels())
      : GenericContextParts{options, device}, PassContext{own_device, own_options, kernels, {}} {}
  explicit GenericContext(const KernelModel& kernels) : GenericContext({}, {}, kernels) {}
  GenericContext(const GenericContext&) = delete;
  GenericContext& operator=(const GenericContext&) = delete;

 private:
  static const KernelModel& AnyKernels() {
    static const GenericKernelModel kernels;
    return kernels;
  }
};

}  // namespace hlorun::passes
