// Which elementwise ops never round: their result is an operand, or its sign's opposite.
#pragma once

#include <algorithm>
#include <array>

#include "hlo/opcode.h"

namespace hlorun::hlo {

constexpr bool NeverRounds(Opcode opcode) {
  constexpr std::array kExact = {Opcode::kAbs,     Opcode::kClamp,  Opcode::kCopy,   Opcode::kMaximum,
                                 Opcode::kMinimum, Opcode::kNegate, Opcode::kSelect, Opcode::kSign};
  return std::find(kExact.begin(), kExact.end(), opcode) != kExact.end();
}

}  // namespace hlorun::hlo
