// Module -> HloModuleProto.
#include <google/protobuf/arena.h>

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "hlo/error.h"
#include "hlo/number_types.h"
#include "hlo/proto/annotation_proto.h"
#include "hlo/proto/attribute_proto.h"
#include "hlo/proto/proto.h"
#include "hlo/proto/shape_proto.h"
#include "hlo/proto/sharding_proto.h"

namespace hlorun::hlo {
namespace {

// Ids as XLA makes them: the computation's number in the upper half, the instruction's in the lower.
constexpr int kComputationShift = 32;

class ModuleWriter {
 public:
  explicit ModuleWriter(const Module& module) : module_(module) {
    int64_t computation_id = 0;
    for (const auto& computation : module.computations()) {
      int64_t id = computation_id << kComputationShift;
      for (const auto& instruction : computation->instructions()) {
        ids_[instruction.get()] = id++;
        if (instruction->Is(Opcode::kFusion)) fusions_.insert(instruction->called());
      }
      computation_ids_[computation.get()] = computation_id++;
    }
  }

  void Write(proto::HloModuleProto* message) {
    message->set_name(module_.name());
    WriteHeader(message);
    for (const Computation* computation : module_.PostOrder())
      WriteComputation(*computation, message->add_computations());
    if (module_.is_scheduled) WriteSchedule(message->mutable_schedule());
  }

 private:
  void WriteHeader(proto::HloModuleProto* message) {
    const Computation* entry = module_.entry();
    if (entry == nullptr) Invalid("module {} has no entry computation", module_.name());
    message->set_entry_computation_name(entry->name());
    message->set_entry_computation_id(computation_ids_.at(entry));
    ProgramShape shape = module_.entry_layout.value_or(entry->program_shape());
    shape.parameter_names.clear();
    for (size_t i = 0; i < shape.parameters.size(); ++i) shape.parameter_names.push_back(fmt::format("p{}", i));
    ProgramShapeToProto(shape, message->mutable_host_program_shape());
    WriteAliases(message);
    if (module_.replica_count * module_.num_partitions > 1) WriteDevices(message->mutable_device_assignment());
    if (!module_.stack_frames.empty()) StackFramesToProto(module_.stack_frames, message->mutable_stack_frame_index());
    FrontendAttributesToProto(module_.frontend_attributes, message->mutable_frontend_attributes());
  }

  void WriteAliases(proto::HloModuleProto* message) {
    proto::HloInputOutputAliasProto* aliases = message->mutable_input_output_alias();
    for (const AliasEntry& entry : module_.input_output_alias) {
      proto::HloInputOutputAliasProto::AliasEntryProto* to = aliases->add_entries();
      Assign(entry.output, to->mutable_output_shape_index());
      to->set_parameter_number(entry.parameter);
      Assign(entry.parameter_index, to->mutable_parameter_shape_index());
      to->set_kind(entry.must_alias ? proto::MUST_ALIAS : proto::MAY_ALIAS);
    }
    proto::HloBufferDonorProto* donors = message->mutable_buffer_donor();
    for (const DonorEntry& entry : module_.buffer_donors) {
      proto::HloBufferDonorProto::BufferDonorEntryProto* to = donors->add_entries();
      to->set_parameter_number(entry.parameter);
      Assign(entry.parameter_index, to->mutable_parameter_shape_index());
    }
  }

  // The message has no fields for the numbers of replicas and partitions; an assignment of devices in order says both.
  void WriteDevices(proto::DeviceAssignmentProto* message) {
    message->set_replica_count(static_cast<int32_t>(module_.replica_count));
    message->set_computation_count(static_cast<int32_t>(module_.num_partitions));
    for (int64_t partition = 0; partition < module_.num_partitions; ++partition) {
      proto::DeviceAssignmentProto::ComputationDevice* devices = message->add_computation_devices();
      for (int64_t replica = 0; replica < module_.replica_count; ++replica) {
        devices->add_replica_device_ids(replica * module_.num_partitions + partition);
      }
    }
  }

  void WriteComputation(const Computation& computation, proto::HloComputationProto* message) {
    if (computation.root() == nullptr) Invalid("computation {} has no root", computation.name());
    message->set_name(computation.name());
    message->set_id(computation_ids_.at(&computation));
    message->set_root_id(ids_.at(computation.root()));
    message->set_is_fusion_computation(fusions_.contains(&computation));
    message->set_execution_thread(computation.execution_thread);
    ProgramShapeToProto(computation.program_shape(), message->mutable_program_shape());
    for (const Instruction* instruction : computation.PostOrder()) {
      WriteInstruction(*instruction, message->add_instructions());
    }
  }

  void WriteInstruction(const Instruction& instruction, proto::HloInstructionProto* message) {
    message->set_name(instruction.name());
    message->set_opcode(std::string(OpcodeName(instruction.opcode())));
    message->set_id(ids_.at(&instruction));
    ShapeToProto(instruction.shape(), message->mutable_shape());
    for (const Instruction* operand : instruction.operands()) message->add_operand_ids(ids_.at(operand));
    for (const Instruction* before : instruction.control_predecessors()) {
      message->add_control_predecessor_ids(ids_.at(before));
    }
    std::vector<Computation*> called = instruction.called_computations();
    // The message lists a loop's body before its condition.
    if (instruction.Is(Opcode::kWhile)) std::reverse(called.begin(), called.end());
    for (const Computation* callee : called) message->add_called_computation_ids(computation_ids_.at(callee));
    message->set_backend_config(instruction.backend_config);
    AttributesToProto(instruction, message);  // a custom call's configuration is one of them
    MetadataToProto(instruction.metadata, message->mutable_metadata());
    if (instruction.sharding.has_value()) ShardingToProto(*instruction.sharding, message->mutable_sharding());
    FrontendAttributesToProto(instruction.frontend_attributes, message->mutable_frontend_attributes());
    UnknownAttributesToProto(instruction, message);
  }

  // Of all computations but those of fusions, which are not executed step by step.
  void WriteSchedule(proto::HloScheduleProto* message) {
    for (const auto& computation : module_.computations()) {
      if (fusions_.contains(computation.get())) continue;
      proto::HloScheduleProto::SequencesEntry* entry = message->add_sequences();
      entry->set_key(computation_ids_.at(computation.get()));
      for (const auto& instruction : computation->instructions()) {
        entry->mutable_value()->add_instruction_ids(ids_.at(instruction.get()));
      }
    }
  }

  const Module& module_;
  std::unordered_map<const Instruction*, int64_t> ids_;
  std::unordered_map<const Computation*, int64_t> computation_ids_;
  std::unordered_set<const Computation*> fusions_;
};

}  // namespace

std::string ModuleToProto(const Module& module) {
  google::protobuf::Arena arena;
  auto* message = google::protobuf::Arena::CreateMessage<proto::HloModuleProto>(&arena);
  ModuleWriter(module).Write(message);
  if (message->ByteSizeLong() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    Fail(ErrorCode::kResourceExhausted, "module {} needs {} bytes; a protocol buffer has 2 GiB at most", module.name(),
         message->ByteSizeLong());
  }
  return message->SerializeAsString();
}

}  // namespace hlorun::hlo
