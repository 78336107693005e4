// One number made of many by one work-item, outside of loops that are vectors themselves: elements go by lanes, which
// become one at the end. An order of its own, which depends on the device's lanes and nothing else.
//
//   s = f32[] reduce(x: f32[256], 0), add      ->  lanes[l] += x[16 * c + l], then lanes 0..7 + 8..15, 0..3 + 4..7, ...
#pragma once

#include "backends/opencl/codegen/emission.h"

namespace hlorun::opencl {

// Elements 0 .. count side by side, in vectors of `width`.
ir::Stmt LoopOfLanes(Emission& e, int64_t count, int width, const std::function<void(const Index&)>& body);

// Halves of a vector, combined until one lane is left.
Value JoinVector(hlo::Opcode opcode, hlo::ElementType type, ir::Expr vector, Body& body);

// Computes `op`, a reduce or a dot of one result, in `frame`, and remembers it, where it is one whose elements lie
// along one dimension that is long enough for vectors. What it reads must be in reach of `frame`.
void FoldInLanes(Emission& e, const Frame& frame, const hlo::Instruction& op);

}  // namespace hlorun::opencl
