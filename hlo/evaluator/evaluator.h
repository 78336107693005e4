// The definition of every op: plain, slow, obviously right, on host literals.
//
// Semantics are XLA:CPU's: denormal f32/f64 flushed to zero as operands and results of arithmetic, bf16 and f16
// computed in f32 and rounded at each op, integer division by zero gives -1 (remainder: the dividend), shifts past the
// width give 0 (or the sign), out-of-bounds starts clamp, sorts use the comparator as given and are stable.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "hlo/module.h"

namespace hlorun::hlo {

class CustomCallRegistry;
class HostChannels;

struct EvaluatorOptions {
  // Called after each instruction of the entry computation, in order; for --reference=each.
  std::function<void(const Instruction&, const Literal&)> observer;
  // Gives up with kResourceExhausted after this many elementary steps; 0: no limit. For constant folding.
  int64_t step_limit = 0;
  bool flush_denormals = true;
  // Custom-calls of the user's own; null for none. Outlives the evaluation.
  const CustomCallRegistry* custom_calls = nullptr;
  // Where infeed, outfeed and the host's send and recv exchange values; null: they are errors.
  HostChannels* channels = nullptr;
};

// One device. `arguments` are one literal a parameter (tuples as tuple literals). The result is the root's literal.
Literal Evaluate(const Module& module, std::span<const Literal> arguments, const EvaluatorOptions& options = {});
Literal EvaluateComputation(const Computation& computation, std::span<const Literal> arguments,
                            const EvaluatorOptions& options = {});
// One instruction from its operands' values; for constant folding.
Literal EvaluateInstruction(const Instruction& instruction, std::span<const Literal> operands,
                            const EvaluatorOptions& options = {});

// replica_count * num_partitions devices in one process, collectives included. arguments[d] are device d's; device
// d = replica * num_partitions + partition.
std::vector<Literal> EvaluateSpmd(const Module& module, const std::vector<std::vector<Literal>>& arguments,
                                  const EvaluatorOptions& options = {});

}  // namespace hlorun::hlo
