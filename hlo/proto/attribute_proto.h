// The attributes of each opcode, to and from the fields of HloInstructionProto.
#pragma once

#include "hlo/instruction.h"
#include "hlo/proto/hlo.pb.h"

namespace hlorun::hlo {

// The payload of `opcode`. Some defaults depend on the operands' types; `operands` are those of the instruction.
Attributes AttributesFromProto(Opcode opcode, const proto::HloInstructionProto& message,
                               const std::vector<Instruction*>& operands);
void AttributesToProto(const Instruction& instruction, proto::HloInstructionProto* message);

}  // namespace hlorun::hlo
