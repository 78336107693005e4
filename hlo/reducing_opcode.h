// Ops of two values that reductions, cumulative ops and collectives know as one opcode: each is associative.
#pragma once

#include "hlo/opcode.h"

namespace hlorun::hlo {

inline bool IsReducing(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAdd:
    case Opcode::kMultiply:
    case Opcode::kMaximum:
    case Opcode::kMinimum:
    case Opcode::kAnd:
    case Opcode::kOr:
    case Opcode::kXor: return true;
    default: return false;
  }
}

}  // namespace hlorun::hlo
