// Custom-calls that stand for ops: what JAX, PyTorch/XLA and jaxlib write where an op had no opcode of its own.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "hlo/instruction.h"

namespace hlorun::hlo {

// The opcode that "mhlo.erf" or "chlo.erf" is; nothing for other targets.
std::optional<Opcode> OpcodeNamedBy(std::string_view target);

// Sharding, annotate_device_placement, MoveToHost ...: the value is the operand's, the target only says something of
// it.
bool IsMarkerTarget(std::string_view target);

struct TopKRequest {
  int64_t k;
  bool largest;
};
// What topk, TopK or mhlo.topk asks for; nothing for other instructions, or where the comparator is no comparison.
std::optional<TopKRequest> TopKRequestOf(const Instruction& instruction);

// ApproxTopK and PartialReduce: (arrays..., values for padding...) -> arrays, shorter along one dimension. The best
// elements by the called comparator, at least as many as the recall asks for: here all of them, in order.
struct ApproxTopK {
  int64_t dimension;
  int64_t arrays;  // operands [0, arrays) are sorted together, [arrays, 2 arrays) pad them
  int64_t length;  // of the results along `dimension`
};
// Throws kInvalidArgument for such a call whose operands, results or backend_config do not fit.
std::optional<ApproxTopK> ApproxTopKOf(const Instruction& instruction);

// All targets named above, for messages.
std::vector<std::string> NamedTargets();

}  // namespace hlorun::hlo
