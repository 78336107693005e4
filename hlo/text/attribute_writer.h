// Prints the payload of an instruction's attributes.
#pragma once

#include <string>

#include "hlo/instruction.h"

namespace hlorun::hlo {

// ", name=value" for each attribute that the opcode prints.
std::string PrintPayload(const Instruction& instruction);
std::string PrintReplicaGroups(const ReplicaGroups& groups);
std::string PrintInts(const std::vector<int64_t>& values);  // "{1,2}"

}  // namespace hlorun::hlo
