// Result shapes, by XLA's rules. Throws Error with a message about the operands' shapes when they do not fit.
#pragma once

#include <span>
#include <vector>

#include "hlo/computation.h"
#include "hlo/opcode.h"

namespace hlorun::hlo {

// The shape that `instruction` must have, from its operands, attributes and called computations, without layouts.
// Opcodes whose shape is given, not inferred (parameter, constant, iota, convert, reshape, bitcast, custom-call, rng,
// infeed, recv ...), return the instruction's own shape after checking what can be checked.
Shape InferShape(const Instruction& instruction);
Shape InferShape(Opcode opcode, std::span<Instruction* const> operands, const Attributes& attributes,
                 std::span<Computation* const> called, const Shape& declared);

// The type in which scaled-dot multiplies an operand by its scale: the wider one; bf16 where both are below 16 bits,
// f32 where they differ at the same width.
ElementType DequantizedType(ElementType operand, ElementType scale);

// Output size of one window dimension over a base of `size` elements.
int64_t WindowedSize(int64_t size, const WindowDimension& window);

}  // namespace hlorun::hlo
