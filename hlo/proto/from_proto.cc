// HloModuleProto -> Module.
#include <google/protobuf/arena.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "hlo/error.h"
#include "hlo/proto/annotation_proto.h"
#include "hlo/proto/attribute_proto.h"
#include "hlo/proto/literal_proto.h"
#include "hlo/proto/proto.h"
#include "hlo/proto/shape_proto.h"
#include "hlo/proto/sharding_proto.h"
#include "hlo/proto/wire.h"

namespace hlorun::hlo {
namespace {

using ComputationsById = std::unordered_map<int64_t, Computation*>;

// Runs `read`; an Error gets `where` in front.
template <typename Function>
auto Locate(const std::string& where, const Function& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error(error.code(), where + ": " + error.message());
  }
}

// Callers are read by position elsewhere, so each must have its callees from the start.
void CheckCalledCount(Opcode opcode, size_t count) {
  const bool any = opcode == Opcode::kCustomCall || opcode == Opcode::kAsyncUpdate || opcode == Opcode::kAsyncDone;
  if (any || (opcode == Opcode::kConditional && count > 0)) return;
  const bool two = opcode == Opcode::kWhile || opcode == Opcode::kSelectAndScatter;
  const size_t expected = two ? 2 : HasTrait(opcode, kCalls) ? 1 : 0;
  if (count != expected) Invalid("{} calls {} computation(s), but has {}", OpcodeName(opcode), expected, count);
}

// The computation under construction, with what the messages refer to by id.
class ComputationReader {
 public:
  ComputationReader(const proto::HloComputationProto& message, const ComputationsById& computations, Computation* into)
      : message_(message), computations_(computations), into_(into) {}

  void Read(const std::vector<int64_t>* schedule) {
    into_->execution_thread = message_.execution_thread() == "main" ? "" : message_.execution_thread();
    for (const proto::HloInstructionProto& instruction : message_.instructions()) {
      Locate(fmt::format("instruction %{}", instruction.name()), [&] { ReadInstruction(instruction); });
    }
    // Predecessors may come later in the list than their successors.
    for (const proto::HloInstructionProto& instruction : message_.instructions()) {
      for (int64_t id : instruction.control_predecessor_ids()) {
        by_id_.at(instruction.id())->AddControlPredecessor(Find(id, "control predecessor"));
      }
    }
    CheckParameters();
    into_->set_root(Find(message_.root_id(), "root"));
    SetOrder(schedule);
  }

 private:
  void ReadInstruction(const proto::HloInstructionProto& message) {
    const std::optional<Opcode> opcode = OpcodeFromName(message.opcode());
    if (!opcode.has_value()) Invalid("the opcode '{}' is not known to hlorun", message.opcode());
    const Shape shape = ShapeFromProto(message.shape());
    std::vector<Instruction*> operands;
    for (int64_t id : message.operand_ids()) operands.push_back(Find(id, "operand"));
    std::vector<Computation*> called;
    for (int64_t id : message.called_computation_ids()) {
      const auto it = computations_.find(id);
      if (it == computations_.end()) Invalid("it calls computation {}, which the module does not have", id);
      called.push_back(it->second);
    }
    CheckCalledCount(*opcode, called.size());
    // The message lists a loop's body before its condition.
    if (*opcode == Opcode::kWhile) std::reverse(called.begin(), called.end());
    const int arity = InfoOf(*opcode).arity;
    if (arity >= 0 && message.operand_ids_size() != arity) {
      Invalid("{} takes {} operand(s), but has {}", message.opcode(), arity, message.operand_ids_size());
    }
    Attributes attributes = AttributesFromProto(*opcode, message, operands);
    CheckAgainstShape(attributes, shape);
    auto instruction =
        std::make_unique<Instruction>(*opcode, shape, std::move(operands), std::move(attributes), std::move(called));
    ReadAnnotations(message, instruction.get());
    Instruction* added = into_->Add(std::move(instruction));
    if (!by_id_.emplace(message.id(), added).second) Invalid("two instructions have the id {}", message.id());
    order_.emplace_back(message.id(), added);
  }

  void CheckAgainstShape(const Attributes& attributes, const Shape& shape) const {
    if (const auto* constant = std::get_if<attr::Constant>(&attributes)) {
      if (!constant->value.shape().SameAs(shape)) {
        Invalid("its value is {}, but its shape is {}", constant->value.shape().ToString(false), shape.ToString(false));
      }
    }
    if (const auto* parameter = std::get_if<attr::Parameter>(&attributes)) {
      if (parameter->number < 0 || parameter->number >= message_.instructions_size()) {
        Invalid("parameter number {} is out of range", parameter->number);
      }
      const auto number = static_cast<size_t>(parameter->number);
      if (number < into_->parameters().size() && into_->parameters()[number] != nullptr) {
        Invalid("parameter number {} is taken", parameter->number);
      }
    }
  }

  void ReadAnnotations(const proto::HloInstructionProto& message, Instruction* instruction) const {
    instruction->set_name(message.name());
    instruction->metadata = MetadataFromProto(message.metadata());
    if (message.has_sharding()) instruction->sharding = ShardingFromProto(message.sharding());
    instruction->frontend_attributes = FrontendAttributesFromProto(message.frontend_attributes());
    // A custom call keeps its configuration as an attribute.
    if (!instruction->Is(Opcode::kCustomCall)) instruction->backend_config = message.backend_config();
    UnknownAttributesFromProto(message, instruction);
  }

  Instruction* Find(int64_t id, std::string_view what) const {
    const auto it = by_id_.find(id);
    if (it == by_id_.end()) Invalid("{} {} is not one of the instructions before it", what, id);
    return it->second;
  }

  void CheckParameters() const {
    for (const Instruction* parameter : into_->parameters()) {
      if (parameter == nullptr) Invalid("a parameter is missing: they must be numbered 0, 1, 2 ...");
    }
  }

  // The schedule's order where there is one; else that of the ids, which is the order of the text that they came from.
  void SetOrder(const std::vector<int64_t>* schedule) {
    std::vector<Instruction*> order;
    if (schedule != nullptr) {
      std::vector<int64_t> sorted = *schedule;
      std::sort(sorted.begin(), sorted.end());
      const bool once = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
      if (!once || sorted.size() != order_.size()) Invalid("its schedule does not hold each instruction once");
      for (int64_t id : *schedule) order.push_back(Find(id, "scheduled instruction"));
    } else {
      std::stable_sort(order_.begin(), order_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      for (const auto& [id, instruction] : order_) order.push_back(instruction);
    }
    into_->SetOrder(order);
  }

  const proto::HloComputationProto& message_;
  const ComputationsById& computations_;
  Computation* into_;
  std::unordered_map<int64_t, Instruction*> by_id_;
  std::vector<std::pair<int64_t, Instruction*>> order_;
};

void ReadComputations(const proto::HloModuleProto& message, Module* module) {
  std::vector<const proto::HloComputationProto*> messages;
  for (const proto::HloComputationProto& computation : message.computations()) messages.push_back(&computation);
  std::stable_sort(messages.begin(), messages.end(), [](const auto* a, const auto* b) { return a->id() < b->id(); });
  ComputationsById by_id;
  for (const proto::HloComputationProto* computation : messages) {
    if (!by_id.emplace(computation->id(), module->AddComputation(computation->name())).second) {
      Invalid("two computations have the id {}", computation->id());
    }
  }
  std::unordered_map<int64_t, std::vector<int64_t>> schedule;
  for (const auto& sequence : message.schedule().sequences()) {
    schedule[sequence.key()] = ToVector(sequence.value().instruction_ids());
  }
  for (const proto::HloComputationProto* computation : messages) {
    const auto it = schedule.find(computation->id());
    Locate(fmt::format("computation {}", computation->name()), [&] {
      ComputationReader reader(*computation, by_id, by_id.at(computation->id()));
      reader.Read(it == schedule.end() ? nullptr : &it->second);
    });
  }
  const auto entry = by_id.find(message.entry_computation_id());
  if (entry == by_id.end()) Invalid("the entry computation {} is not in the module", message.entry_computation_id());
  // A file cut off in front of the id would make the first computation the entry.
  if (!message.entry_computation_name().empty() && message.entry_computation_name() != entry->second->name()) {
    Fail(ErrorCode::kDataLoss,
         "the entry computation is {} by its id, but {} by its name: the file is truncated or corrupt",
         entry->second->name(), message.entry_computation_name());
  }
  module->set_entry(entry->second);
}

void ReadHeader(const proto::HloModuleProto& message, Module* module) {
  module->is_scheduled = message.has_schedule();
  if (message.has_host_program_shape()) module->entry_layout = ProgramShapeFromProto(message.host_program_shape());
  for (const auto& entry : message.input_output_alias().entries()) {
    module->input_output_alias.push_back({ToVector(entry.output_shape_index()), entry.parameter_number(),
                                          ToVector(entry.parameter_shape_index()), entry.kind() == proto::MUST_ALIAS});
  }
  for (const auto& entry : message.buffer_donor().entries()) {
    module->buffer_donors.push_back({entry.parameter_number(), ToVector(entry.parameter_shape_index())});
  }
  if (message.has_device_assignment()) {
    module->replica_count = std::max(1, message.device_assignment().replica_count());
    module->num_partitions = std::max(1, message.device_assignment().computation_count());
  }
  module->stack_frames = StackFramesFromProto(message.stack_frame_index());
  module->frontend_attributes = FrontendAttributesFromProto(message.frontend_attributes());
}

std::unique_ptr<Module> FromMessage(const proto::HloModuleProto& message) {
  auto module = std::make_unique<Module>(message.name());
  ReadHeader(message, module.get());
  ReadComputations(message, module.get());
  return module;
}

template <typename Message>
const Message& Parse(std::string_view bytes, google::protobuf::Arena* arena) {
  auto* message = google::protobuf::Arena::CreateMessage<Message>(arena);
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    Invalid("the file has {} bytes; a protocol buffer has 2 GiB at most", bytes.size());
  }
  if (!message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    Fail(ErrorCode::kDataLoss,
         "the file is truncated or corrupt: it starts as a binary HLO module, but does not end as one");
  }
  return *message;
}

}  // namespace

bool LooksLikeHloProto(std::string_view bytes) { return SniffWire(bytes) != WireKind::kUnknown; }

std::unique_ptr<Module> ModuleFromProto(std::string_view bytes, const std::string& file_name) {
  google::protobuf::Arena arena;
  try {
    switch (SniffWire(bytes)) {
      case WireKind::kModule: return FromMessage(Parse<proto::HloModuleProto>(bytes, &arena));
      case WireKind::kHlo: return FromMessage(Parse<proto::HloProto>(bytes, &arena).hlo_module());
      case WireKind::kSnapshot: return FromMessage(Parse<proto::HloSnapshot>(bytes, &arena).hlo().hlo_module());
      case WireKind::kUnknown: break;
    }
    Invalid("this is no HloModuleProto, HloProto or HloSnapshot");
  } catch (const Error& error) {
    throw Error(error.code(), error.message(), SourceLocation{file_name, 0, 0, ""});
  }
}

std::vector<Literal> ArgumentsFromSnapshot(std::string_view bytes) {
  std::vector<Literal> arguments;
  if (SniffWire(bytes) != WireKind::kSnapshot) return arguments;
  google::protobuf::Arena arena;
  for (const proto::LiteralProto& argument : Parse<proto::HloSnapshot>(bytes, &arena).arguments()) {
    arguments.push_back(LiteralFromProto(argument));
  }
  return arguments;
}

}  // namespace hlorun::hlo
