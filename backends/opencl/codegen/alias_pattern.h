// Which results of an instruction lie where operands do.
#pragma once

#include "backends/opencl/codegen/emit.h"
#include "passes/memory/buffer_assignment.h"

namespace hlorun::opencl {

AliasPattern AliasesOf(const hlo::Instruction& instruction, const passes::BufferAssignment& buffers);

}  // namespace hlorun::opencl
