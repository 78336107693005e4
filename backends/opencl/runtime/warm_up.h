// Makes a program's binaries final on platforms that compile at the first launch (Quirks::binaries_need_launch):
// launches every variant of each kernel without letting it work.
#pragma once

#include <span>
#include <string>

#include "backends/opencl/plan.h"
#include "backends/opencl/runtime/device_context.h"

namespace hlorun::opencl {

// The kernel's source with a first statement that returns when its first argument is null. So a warm-up neither needs
// memory nor can loop on what it would read there. Kernels with barriers stay as they are: an early return changes how
// work-items are serialised around them.
std::string WithEntryGuard(const Kernel& kernel);
bool HasBarrier(const Kernel& kernel);
// `source` of a kernel called `name` whose one group does the work of many: two more parameters, the first of them and
// the one after the last. Its body neither returns nor changes its parameters, as all that codegen prints.
std::string WithGroupLoop(const std::string& source, const std::string& name);

// For each kernel the largest byte count that any launch gives one of its arguments.
std::vector<int64_t> LargestArguments(const Plan& plan);

// `kernels` index into plan.kernels; `program` is of `context`, which is not the context of runs.
void WarmUp(const Plan& plan, std::span<const int32_t> kernels, const cl::Program& program, const cl::Context& context,
            const cl::Device& device, const DeviceContext& run_context);

}  // namespace hlorun::opencl
