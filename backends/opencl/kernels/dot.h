// Matrix products: `dot`, and fusions of a dot with elementwise consumers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/opencl/codegen/emit.h"
#include "hlo/instruction.h"

namespace hlorun::opencl {

// The launches that compute `instruction` (passes::KernelKind::kDot); nullopt: not in a form that these kernels know,
// the generic emitter takes it.
std::optional<std::vector<EmittedLaunch>> EmitDot(const hlo::Instruction& instruction, const AliasPattern& aliases,
                                                  const EmitContext& context);

// Scratch that EmitDot's launches use: packed operands and partial sums. 0 when EmitDot would return nullopt.
// Whether EmitDot takes it.
bool HasProductKernel(const hlo::Instruction& instruction, const DeviceSpec& device);
int64_t DotScratchBytes(const hlo::Instruction& instruction, const DeviceSpec& device);

}  // namespace hlorun::opencl
