// The k first elements of each row in sorted order; the topk opcode and the TopK custom-call.
#pragma once

#include "hlo/literal.h"

namespace hlorun::hlo {

// (values, s32 indices) along the last dimension, in total order; equal elements by ascending index.
Literal TopK(const Literal& operand, int64_t k, bool largest);

}  // namespace hlorun::hlo
