// What an update in place may read of the array that it updates: the part that it is about to write.
//
//   old  = f32[1,1024] dynamic-slice(state, row, zero), dynamic_slice_sizes={1,1024}
//   new  = f32[1,1024] add(old, given)
//   next = f32[1024,1024] dynamic-update-slice(state, new, row, zero)
//
// Each element of `state` is read at the place where the result of it is stored, and by nothing else.
#pragma once

#include "hlo/instruction.h"

namespace hlorun::passes {

// Whether `op` changes a part of its first operand, which it may do where that lies.
inline bool UpdatesPart(const hlo::Instruction& op) {
  return op.Is(hlo::Opcode::kDynamicUpdateSlice) || op.Is(hlo::Opcode::kScatter);
}

// The dynamic-update-slice that `instruction` is, or that is the root of the fusion that it is; else null.
const hlo::Instruction* UpdateAtRoot(const hlo::Instruction& instruction);

// The operand of `instruction` that this updates; null where there is none, or the fusion computes it.
const hlo::Instruction* UpdatedOperand(const hlo::Instruction& instruction);

// Whether each element of `op` is computed from the element of `operand` at the same place, and from no other of it.
bool ReadsSamePlace(const hlo::Instruction& op, const hlo::Instruction& operand);

// Whether `slice` is just what `update`, a dynamic-update-slice of the same array, overwrites.
bool SlicesUpdatedPart(const hlo::Instruction& slice, const hlo::Instruction& update);

// Whether every way from `array`, which `update` updates, leads to it: as what it updates, or through a slice of the
// updated part and elementwise ops.
bool OnlyUpdatedPartIsRead(const hlo::Instruction& array, const hlo::Instruction& update);

}  // namespace hlorun::passes
