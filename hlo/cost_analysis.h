// FLOPs and bytes of instructions, from shapes alone.
#pragma once

#include <optional>

#include "hlo/module.h"

namespace hlorun::hlo {

struct Cost {
  double flops = 0;            // multiply and add count as two
  double transcendentals = 0;  // exp, tanh, ...; not in flops
  double bytes_read = 0;
  double bytes_written = 0;
  Cost& operator+=(const Cost& other);
};

// A fusion's flops are its computation's; its bytes are what it reads of its operands and writes of its results. Slices
// and gathers read what they take; dynamic-update-slice and scatter work in place. While: one iteration of condition
// and body, times the known_trip_count of its backend_config where there is one. Conditional: its costliest branch. The
// module must have passed the verifier.
Cost CostOf(const Instruction& instruction);
Cost CostOf(const Computation& computation);

// How many elements of its first operand the windows of a reduce-window or a select-and-scatter read together, one as
// often as windows have it.
double ElementsInWindows(const Instruction& windowed);

// known_trip_count={"n":"7"} in the backend_config of a while, as XLA's passes and ours leave it.
std::optional<int64_t> KnownTripCount(const Instruction& loop);

}  // namespace hlorun::hlo
