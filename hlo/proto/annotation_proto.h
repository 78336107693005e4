// What instructions carry besides their meaning: metadata, origin, statistics, result accuracy, frontend attributes.
//
// hlorun keeps some of these as the text that HLO prints; here that text is read and written.
#pragma once

#include <map>
#include <string>

#include "hlo/instruction.h"
#include "hlo/module.h"
#include "hlo/proto/hlo.pb.h"
#include "hlo/text/lexer.h"

namespace hlorun::hlo {

Metadata MetadataFromProto(const proto::OpMetadata& message);
void MetadataToProto(const Metadata& metadata, proto::OpMetadata* message);

// metadata={...} of a sharding: {op_name="a"} or {{op_name="a"}, {op_name="b"}}; empty for none.
std::string MetadataListText(const google::protobuf::RepeatedPtrField<proto::OpMetadata>& list);
void MetadataListFromText(const std::string& text, google::protobuf::RepeatedPtrField<proto::OpMetadata>* list);

std::map<std::string, std::string> FrontendAttributesFromProto(const proto::FrontendAttributes& message);
void FrontendAttributesToProto(const std::map<std::string, std::string>& attributes,
                               proto::FrontendAttributes* message);

// The entries of Instruction::unknown_attributes that have a field in the message: statistics, result_accuracy, origin.
void UnknownAttributesFromProto(const proto::HloInstructionProto& message, Instruction* instruction);
// Those that have none are left out.
void UnknownAttributesToProto(const Instruction& instruction, proto::HloInstructionProto* message);

StackFrameTables StackFramesFromProto(const proto::StackFrameIndexProto& message);
void StackFramesToProto(const StackFrameTables& tables, proto::StackFrameIndexProto* message);

}  // namespace hlorun::hlo
