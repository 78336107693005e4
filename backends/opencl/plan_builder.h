// Scheduled module + buffer assignment -> Plan: walks the executed computations, emits kernels, deduplicates them.
#pragma once

#include <memory>

#include "backends/opencl/plan.h"
#include "hlo/module.h"
#include "passes/pass.h"

namespace hlorun::opencl {

// `module` has been through the whole pipeline. The plan does not refer to it afterwards.
Plan BuildPlan(const hlo::Module& module, const passes::BufferAssignment& buffers, passes::PassContext& context);

// Saves and loads plans with the kernels' binaries. Sections are checksummed and bounds-checked; constants are mapped,
// not read. Load throws Error: kDataLoss for a corrupt file, kFailedPrecondition for another version.
struct SavedPlan {
  Plan plan;
  std::vector<std::string> binaries;           // per program, as clGetProgramInfo gave them
  std::vector<std::vector<int32_t>> programs;  // kernel indices of each program
  std::string fingerprint;                     // of device, driver and hlorun's codegen version
};
void SavePlan(const SavedPlan& saved, const std::string& path);  // temporary name, then rename
SavedPlan LoadPlan(const std::string& path);
bool LooksLikePlan(std::string_view bytes);

}  // namespace hlorun::opencl
