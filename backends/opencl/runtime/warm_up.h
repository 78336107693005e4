// Makes a program's binaries final on platforms that compile at the first launch (Quirks::binaries_need_launch):
// launches every variant of each kernel without letting it work.
#pragma once

#include "backends/opencl/runtime/cl.h"
#include "backends/opencl/runtime/compile_program.h"

namespace hlorun::opencl {

// `program` is of `context`, which is not the context of runs.
void WarmUp(const ProgramRequest& request, const cl::Program& program, const cl::Context& context,
            const cl::Device& device);

}  // namespace hlorun::opencl
