// What one part of a value, cut along a dimension, needs of the operands that it is made of.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "hlo/instruction.h"

namespace hlorun::passes {

// All of it.
inline constexpr int64_t kWhole = -1;

// For each operand of `value`, the dimension along which as many parts of it are each needed by one part of result leaf
// `leaf` cut along dimension `d`, or kWhole. nullopt where the op's own rule (spmd::FactorRule) says neither. For
// instructions that compute or reinterpret arrays; parameters, tuples and control flow are the caller's.
std::optional<std::vector<int64_t>> OperandCuts(const hlo::Instruction& value, int64_t leaf, int64_t d);

// How far apart elements of one index of `dimension` are, in elements of the dimension's own, and the bytes of one
// index: the same for two arrays whose parts are the same bytes.
std::pair<int64_t, int64_t> Around(const hlo::Shape& shape, int64_t dimension);

}  // namespace hlorun::passes
