// What the reduction emitters know of reducers and of the reduces in a fusion.
#pragma once

#include <optional>
#include <vector>

#include "backends/opencl/codegen/element_expr.h"
#include "hlo/instruction.h"

namespace hlorun::opencl {

// The neutral element of a reducer that is one opcode; -0 for floating sums, of which each may be -0.
std::optional<Value> NeutralOf(hlo::Opcode opcode, hlo::ElementType type);

// One operand, one opcode, and a neutral element that lanes and parts can start from.
bool HasLanes(const hlo::Instruction& reduce);

// The reduces of the instruction by dependence: those of a level need only levels before.
std::vector<std::vector<const hlo::Instruction*>> ReduceLevels(const hlo::Instruction& instruction);

// The same dimensions of arrays of the same dimensions.
bool ReduceAlike(const hlo::Instruction& a, const hlo::Instruction& b);

// The size of dimension `d` beyond which all of these reductions meet neutral elements only; null where none is known
// that holds for all.
const hlo::Instruction* CommonSize(const std::vector<const hlo::Instruction*>& reduces, int64_t d);

// Partial results keep the computation type.
inline hlo::ElementType PartialType(hlo::ElementType type) { return ValueType(type).element; }
// Bytes of one partial result of each of a reduce's arrays.
int64_t PartialBytes(const hlo::Instruction& reduce);
// Bytes of `count` partial results of `reduce` in scratch, aligned.
int64_t PartialBytes(const hlo::Instruction& reduce, int64_t count);

}  // namespace hlorun::opencl
