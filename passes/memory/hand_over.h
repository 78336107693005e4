// The last value of what a loop carries, handed to those that read it when the next one is known.
//
//   before: body { i = p.0  r = (s32[], f32[]) region(i, x)  t = r.1  u = f(t, i)  ROOT n = (r.0, u) }
//   after:  body { i = p.0  r = (s32[], f32[], s32[]) region(i, x)  t = r.1  h = r.2  u = f(t, h)  ROOT n = (r.0, u) }
//
// The region returns what it was given as one result more. It stores small results when it has read all its operands,
// so the next value may lie where the last one lay: a store more in a kernel that runs anyway, instead of a copy. A
// kernel of a few scalars becomes a region for that.
#pragma once

#include "passes/kernel_model.h"
#include "passes/memory/colocation.h"

namespace hlorun::passes {

// Does it where `flow`, which failed to join, is a region's result that goes back to the slot of one of its operands,
// and the operand is read later on. Returns whether it did; `dataflow` knows nothing of the instructions that are new
// then.
bool HandOver(const Flow& flow, const Dataflow& dataflow, const KernelModel& kernels);

}  // namespace hlorun::passes
