// Work that is the same in every trip of a loop, done once in front of it.
//
//   before: while: pack(weights -> scratch)   multiply(x, scratch -> x)
//   after:  pack(weights -> kept)             while: multiply(x, kept -> x)
//
// What is moved are launches of a loop's body that pack an operand which nothing in the loop writes. Their results get
// places of their own behind the arena's others.
#pragma once

#include "backends/opencl/plan.h"

namespace hlorun::opencl {

// Of the plan's entry; what is done once for several runs (kept_work.h) has no loops.
void MoveOutOfLoops(Plan& plan);

}  // namespace hlorun::opencl
