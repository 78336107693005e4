// Numbers of array values ("nodes"), as the propagation and the search for plans keep them: which node each leaf of an
// instruction is. Tuples and barriers hand the nodes of their operands on; -1 stands for what is no array.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "hlo/instruction.h"

namespace hlorun::passes::spmd {

using LeafNodes = std::unordered_map<const hlo::Instruction*, std::vector<int>>;

// Of all operands, which must be known, one after another.
std::vector<int> OperandNodes(const LeafNodes& known, const hlo::Instruction& instruction);

// Of an instruction whose leaves are leaves of its operands; nullopt for any other.
std::optional<std::vector<int>> NodesHandedOn(const LeafNodes& known, const hlo::Instruction& instruction);

}  // namespace hlorun::passes::spmd
