// Kernels -> programs in a device's context: grouped, compiled in parallel or taken from the disk cache.
#pragma once

#include <string>
#include <vector>

#include "backends/opencl/plan.h"
#include "backends/opencl/runtime/device_context.h"
#include "backends/opencl/runtime/executable.h"
#include "backends/opencl/runtime/native_call.h"
#include "backends/opencl/runtime/program_text.h"

namespace hlorun::opencl {

// The programs of a plan, ready in the context that runs them. Immutable.
struct ProgramSet {
  std::vector<cl::Program> programs;
  std::vector<std::string> binaries;          // of each program
  std::vector<std::vector<int32_t>> kernels;  // of each program: indices into Plan::kernels
  std::vector<int32_t> program_of;            // kernel -> program
  std::vector<KernelEntry> entries;           // kernel -> what a launch names there
  std::vector<NativeFunction> functions;      // kernel -> what a team's member calls; null: it launches the entry
  std::vector<LoadedLibrary> libraries;       // that the functions lie in
  CompileStatistics statistics;

  // Sets `functions` and `libraries`, from the rest.
  void FindFunctions(const Plan& plan, const DeviceContext& context);
  // A kernel object with arguments of its own, of which those that are no arrays of the kernel's are set, but not a
  // team's table. Throws kInternal when the program lacks it.
  cl::Kernel MakeKernel(const Plan& plan, int32_t kernel) const;
};

// Throws Error naming the files that keep source and log when the compiler refuses a kernel.
ProgramSet BuildPrograms(const Plan& plan, DeviceContext& context, const BuildOptions& options);
// From a plan saved for this device: compiles nothing. Throws kFailedPrecondition when the driver refuses a binary.
ProgramSet LoadPrograms(const SavedPlan& saved, DeviceContext& context);

}  // namespace hlorun::opencl
