// Operands of a product that are made by the ops which were fused in front of it (passes/fusion/product_operands.h):
// where a kernel would load elements of one, it computes them.
#pragma once

#include "backends/opencl/kernels/kernel_draft.h"
#include "hlo/instruction.h"

namespace hlorun::opencl {

// Whether operand `of_dot` of `hero` is made by ops of the fusion that hero is in.
bool IsComputed(const hlo::Instruction& instruction, const hlo::Instruction& hero, int64_t of_dot);

// Whether `op` of the fused computation is read for nothing but the hero's operands.
bool IsForOperandsOnly(const hlo::Instruction& op, const hlo::Instruction& hero);

// The draft with parameters of kind kComputed, which it only loads from, or prefetches, replaced by what makes their
// elements and the parameters of that. Those lanes of a vector that count, which its predicate has or which the kernel
// does not leave out, are of one line along the operand's last dimension; of a predicate's lanes the first ones are
// there.
KernelDraft WithComputedOperands(KernelDraft draft, const hlo::Instruction& instruction, const hlo::Instruction& hero);

}  // namespace hlorun::opencl
