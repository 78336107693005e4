// Custom-calls of the user's own: their arrays in memory, and the launch of those that are OpenCL C.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "backends/opencl/plan.h"
#include "hlo/custom_calls/registry.h"
#include "passes/memory/buffer_assignment.h"

namespace hlorun::opencl {

// Where the leaves of a custom-call lie; tokens are left out. An operand that the call aliases with a result lies where
// that result does, after `copies` (from, to) have been made.
struct CallArrays {
  std::vector<Slice> operands, results;
  std::vector<hlo::Shape> operand_shapes, result_shapes;
  std::vector<std::pair<Slice, Slice>> copies;
};
CallArrays ArraysOf(const hlo::Instruction& call, const passes::BufferAssignment& buffers);

// The user's definition of `call`, its shapes checked; null for LAPACK's. Throws Error for a target that nobody
// defines.
const hlo::CustomCallDefinition* DefinitionOf(const hlo::Instruction& call, const CallArrays& arrays,
                                              const hlo::CustomCallRegistry* registry);

struct ForeignKernel {
  std::string source;  // with the definitions in front
  Grid grid;
  std::vector<Slice> arguments;
  std::vector<bool> written;
};
ForeignKernel MakeForeignKernel(const hlo::CustomCallDefinition& definition, const CallArrays& arrays);

}  // namespace hlorun::opencl
