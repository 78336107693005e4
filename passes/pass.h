// What a pass is, and what it may know.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/device_spec.h"
#include "hlo/module.h"
#include "passes/options.h"
#include "passes/remark.h"

namespace hlorun::passes {

class KernelModel;

// Passed through a pipeline; owned by the caller, one thread at a time.
struct PassContext {
  const DeviceSpec& device;
  const CompileOptions& options;
  const KernelModel& kernels;
  std::vector<Remark> remarks;
};

// A module -> module transformation. Stateless between runs.
class Pass {
 public:
  virtual ~Pass() = default;
  virtual std::string_view name() const = 0;  // kebab-case, unique: what --passes and dumps call it
  // Returns whether the module changed.
  virtual bool Run(hlo::Module& module, PassContext& context) = 0;
};

}  // namespace hlorun::passes
