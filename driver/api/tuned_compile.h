// Module -> plan, with schedules that were measured on the device.
#pragma once

#include <memory>

#include "backends/collectives/job.h"
#include "backends/opencl/compiler.h"
#include "backends/opencl/runtime/executable.h"

namespace hlorun {

struct TunedCompilation {
  opencl::CompilerResult compiled;
  int64_t schedules_measured = 0;
};

// As opencl::CompileModule, with the choices of options.tuning_file and those kept, and those measured now where
// options.autotune says so. Of a module for several devices the first rank's choices hold on all: collective then over
// a job of several ranks whenever there are choices to make. `may_measure` off: choices of a device of this kind would
// not do for the others.
TunedCompilation CompileTuned(const hlo::Module& module, const CompileOptions& options,
                              const std::shared_ptr<opencl::DeviceContext>& context, const DeviceSpec& spec,
                              const opencl::BuildOptions& build, collectives::Job& job, bool may_measure);

}  // namespace hlorun
