// FLOPs and bytes of instructions, from shapes alone.
#pragma once

#include "hlo/module.h"

namespace hlorun::hlo {

struct Cost {
  double flops = 0;            // multiply and add count as two
  double transcendentals = 0;  // exp, tanh, ...; not in flops
  double bytes_read = 0;
  double bytes_written = 0;
  Cost& operator+=(const Cost& other);
};

// A fusion's flops are its computation's; its bytes are its operands' and results'. While: one iteration of the body
// (times the trip count where `trip_count` knows it, -1 for unknown).
Cost CostOf(const Instruction& instruction);
Cost CostOf(const Computation& computation);

}  // namespace hlorun::hlo
