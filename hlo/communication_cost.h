// Bytes that collectives move, from shapes and replica groups alone.
#pragma once

#include <map>
#include <string>

#include "hlo/module.h"

namespace hlorun::hlo {

// Bytes that one device sends in this collective by the ring algorithm, whatever algorithm runs: for n devices in a
// group, all-reduce 2 (n-1)/n of its operand, reduce-scatter and all-to-all (n-1)/n, all-gather n-1 times its operand,
// permute and broadcast all of it. 0 for other instructions and for the done half of asynchronous pairs.
double RingBytes(const Instruction& instruction);

// Totals by opcode name ("all-reduce" for its start, too) over what the entry executes: bodies of loops times their
// known trip counts, of conditionals the branch that sends most.
std::map<std::string, double> RingBytesByKind(const Module& module);

}  // namespace hlorun::hlo
