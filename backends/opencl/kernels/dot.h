// Matrix products: `dot`, and fusions of a dot with elementwise consumers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/opencl/codegen/emit.h"
#include "backends/opencl/kernels/product_schedule.h"
#include "hlo/instruction.h"

namespace hlorun::opencl {

// The launches that compute `instruction` (passes::KernelKind::kDot); nullopt: not in a form that these kernels know,
// the generic emitter takes it.
std::optional<std::vector<EmittedLaunch>> EmitDot(const hlo::Instruction& instruction, const AliasPattern& aliases,
                                                  const EmitContext& context);

// Whether EmitDot takes it.
bool HasProductKernel(const hlo::Instruction& instruction);
// Scratch that EmitDot's launches use: packed operands and partial sums. 0 when EmitDot would return nullopt.
int64_t DotScratchBytes(const hlo::Instruction& instruction, const EmitContext& context);
// The operands that launches of EmitDot copy, each by one of its own.
std::vector<int64_t> OperandsCopiedByDot(const hlo::Instruction& instruction, const EmitContext& context);

// Whether EmitDot's kernels read operand `of_dot` of the dot once, in runs, so that they may compute `made`, which is
// it or something that it is made of (computed_operand.h).
bool MayComputeOperand(const hlo::Instruction& instruction, int64_t of_dot, const hlo::Instruction& made,
                       const EmitContext& context);

// How many neighbouring rows, from a multiple of so many on, a work-item of `dot`'s kernels finishes one after another;
// 0: none, or not always. Fusions whose root reduces so many rows each are EmitDot's too.
int64_t RowsFinishedByDot(const hlo::Instruction& dot, const EmitContext& context);

// What a tuner may choose a schedule for: the product of an executed instruction, all of it; nullopt: not one, or not
// computed by these kernels.
std::optional<ProductProblem> TunableProductOf(const hlo::Instruction& instruction, const DeviceSpec& device);

}  // namespace hlorun::opencl
