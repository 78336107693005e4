#include "hlo/text/printer.h"

#include <fmt/format.h>

#include <unordered_map>

#include "hlo/text/attribute_fields.h"
#include "hlo/text/attribute_writer.h"
#include "hlo/text/lexer.h"
#include "hlo/text/literal_text.h"
#include "hlo/text/metadata_text.h"

namespace hlorun::hlo {
namespace {

std::string PrintBools(const std::vector<bool>& values) {
  std::string text = "{";
  for (bool value : values) text += fmt::format("{}{}", text.size() > 1 ? "," : "", value ? "true" : "false");
  return text + "}";
}

// XLA writes a value that starts like a JSON dictionary as it is, and any other as a string.
bool IsDictionary(std::string_view text) {
  if (!text.starts_with('{')) return false;
  try {
    Lexer lexer(text, "");
    return lexer.ExpectBalanced("'{'").size() == text.size();
  } catch (const Error&) {
    return false;
  }
}

std::string PrintText(const std::string& text) { return IsDictionary(text) ? text : '"' + Escape(text) + '"'; }

std::string PrintDictionary(const std::map<std::string, std::string>& attributes) {
  std::string text = "{";
  for (const auto& [name, value] : attributes)
    text += fmt::format("{}{}={}", text.size() > 1 ? "," : "", name, PrintText(value));
  return text + "}";
}

// "(f32[2]{0}, /*index=5*/f32[3]{0})": a list of parameters reads like a tuple.
std::string PrintProgramShape(const ProgramShape& shape) {
  return fmt::format("{}->{}", Shape::Tuple(shape.parameters).ToString(), shape.result.ToString());
}

std::string PrintAliases(const std::vector<AliasEntry>& aliases) {
  std::string text = "{ ";
  for (const AliasEntry& alias : aliases) {
    if (text.size() > 2) text += ", ";
    text += fmt::format("{}: ({}, {}, {})", PrintInts(alias.output), alias.parameter, PrintInts(alias.parameter_index),
                        alias.must_alias ? "must-alias" : "may-alias");
  }
  return text + " }";
}

std::string PrintDonors(const std::vector<DonorEntry>& donors) {
  std::string text = "{ ";
  for (const DonorEntry& donor : donors) {
    if (text.size() > 2) text += ", ";
    text += fmt::format("({}, {})", donor.parameter, PrintInts(donor.parameter_index));
  }
  return text + " }";
}

class Printer {
 public:
  explicit Printer(const PrintOptions& options) : options_(options) {}

  void Print(const Module& module);
  void Print(const Computation& computation);
  void Print(const Instruction& instruction);
  std::string&& TakeText() { return std::move(text_); }

 private:
  std::string NameOf(const Instruction& instruction);
  std::string NameOf(const Computation& computation);
  void PrintHeader(const Module& module);
  void PrintOperands(const Instruction& instruction);
  void PrintCalled(const Instruction& instruction);
  void PrintControl(const Instruction& instruction);
  void PrintCommon(const Instruction& instruction);

  const PrintOptions options_;
  std::string text_;
  // Canonical names, given in the order of appearance.
  std::unordered_map<const Instruction*, size_t> instruction_numbers_;
  std::unordered_map<const Computation*, size_t> computation_numbers_;
};

std::string Printer::NameOf(const Instruction& instruction) {
  if (!options_.canonical) return instruction.name();
  return fmt::format("v{}", instruction_numbers_.emplace(&instruction, instruction_numbers_.size()).first->second);
}

std::string Printer::NameOf(const Computation& computation) {
  if (!options_.canonical) return computation.name();
  return fmt::format("c{}", computation_numbers_.emplace(&computation, computation_numbers_.size()).first->second);
}

void Printer::PrintHeader(const Module& module) {
  text_ += fmt::format("HloModule {}", options_.canonical ? "_" : module.name());
  if (module.is_scheduled) text_ += ", is_scheduled=true";
  if (!module.input_output_alias.empty()) text_ += ", input_output_alias=" + PrintAliases(module.input_output_alias);
  if (!module.buffer_donors.empty()) text_ += ", buffer_donor=" + PrintDonors(module.buffer_donors);
  if (!options_.canonical) {
    for (const auto& [name, value] : module.unknown_attributes) text_ += fmt::format(", {}={}", name, value);
  }
  if (module.entry_layout) text_ += ", entry_computation_layout={" + PrintProgramShape(*module.entry_layout) + "}";
  const auto& to_parameters = module.allow_spmd_sharding_propagation_to_parameters;
  const auto& to_output = module.allow_spmd_sharding_propagation_to_output;
  if (!to_parameters.empty()) text_ += ", allow_spmd_sharding_propagation_to_parameters=" + PrintBools(to_parameters);
  if (!to_output.empty()) text_ += ", allow_spmd_sharding_propagation_to_output=" + PrintBools(to_output);
  if (module.replica_count != 1) text_ += fmt::format(", replica_count={}", module.replica_count);
  if (module.num_partitions != 1) text_ += fmt::format(", num_partitions={}", module.num_partitions);
  if (!module.frontend_attributes.empty())
    text_ += ", frontend_attributes=" + PrintDictionary(module.frontend_attributes);
  text_ += "\n\n";
}

void Printer::Print(const Module& module) {
  PrintHeader(module);
  if (options_.metadata && !options_.canonical && !module.stack_frames.empty()) {
    text_ += PrintStackFrames(module.stack_frames) + "\n\n";
  }
  bool first = true;
  for (const Computation* computation : module.PostOrder()) {
    if (!first) text_ += "\n";
    first = false;
    if (computation == module.entry()) text_ += "ENTRY ";
    Print(*computation);
  }
  text_ += "\n";
}

void Printer::Print(const Computation& computation) {
  const ProgramShape shape = computation.program_shape();
  text_ += fmt::format("%{} (", NameOf(computation));
  for (size_t i = 0; i < computation.parameters().size(); ++i) {
    const Instruction& parameter = *computation.parameters()[i];
    if (i > 0) text_ += ", ";
    text_ += fmt::format("{}: {}", NameOf(parameter), parameter.shape().ToString(false));
  }
  text_ += fmt::format(") -> {} {{\n", shape.result.ToString(false));
  for (const Instruction* instruction : computation.PostOrder()) {
    text_ += "  ";
    Print(*instruction);
    text_ += "\n";
  }
  text_ += "}";
  if (!computation.execution_thread.empty()) {
    text_ += fmt::format(", execution_thread=\"{}\"", Escape(computation.execution_thread));
  }
  text_ += "\n";
}

void Printer::PrintOperands(const Instruction& instruction) {
  if (instruction.Is(Opcode::kParameter)) {
    text_ += std::to_string(instruction.parameter_number());
    return;
  }
  if (instruction.Is(Opcode::kConstant)) {
    const auto& constant = instruction.As<attr::Constant>();
    const bool elide = options_.elide_constants_above >= 0 && instruction.shape().IsArray() &&
                       instruction.shape().ElementCount() > options_.elide_constants_above;
    text_ += elide || constant.elided ? "{...}" : PrintLiteral(constant.value);
    return;
  }
  for (size_t i = 0; i < instruction.operands().size(); ++i) {
    const Instruction& operand = *instruction.operands()[i];
    if (i > 0) text_ += ", ";
    if (i > 0 && i % 5 == 0) text_ += fmt::format("/*index={}*/", i);
    if (options_.operand_shapes) text_ += operand.shape().ToString() + " ";
    text_ += "%" + NameOf(operand);
  }
}

void Printer::PrintCalled(const Instruction& instruction) {
  const auto& called = instruction.called_computations();
  if (called.empty() || instruction.Is(Opcode::kAsyncUpdate) || instruction.Is(Opcode::kAsyncDone)) return;
  const auto list = [&] {
    std::string names;
    for (const Computation* computation : called)
      names += fmt::format("{}%{}", names.empty() ? "" : ", ", NameOf(*computation));
    return "{" + names + "}";
  };
  if (instruction.Is(Opcode::kConditional)) {
    const bool by_predicate =
        instruction.operand(0)->shape().element_type() == ElementType::kPred && called.size() == 2;
    text_ += by_predicate
                 ? fmt::format(", true_computation=%{}, false_computation=%{}", NameOf(*called[0]), NameOf(*called[1]))
                 : ", branch_computations=" + list();
    return;
  }
  if (instruction.Is(Opcode::kCustomCall)) {
    text_ += ", called_computations=" + list();
    return;
  }
  const CalledNames names = CalledNamesOf(instruction.opcode());
  for (size_t i = 0; i < called.size() && i < names.names.size(); ++i) {
    text_ += fmt::format(", {}=%{}", names.names[i], NameOf(*called[i]));
  }
}

void Printer::PrintControl(const Instruction& instruction) {
  if (instruction.control_predecessors().empty()) return;
  std::string names;
  for (const Instruction* predecessor : instruction.control_predecessors()) {
    names += fmt::format("{}%{}", names.empty() ? "" : ", ", NameOf(*predecessor));
  }
  text_ += ", control-predecessors={" + names + "}";
}

// What instructions of every opcode may carry.
void Printer::PrintCommon(const Instruction& instruction) {
  if (instruction.sharding) text_ += ", sharding=" + instruction.sharding->ToString();
  if (!instruction.frontend_attributes.empty()) {
    text_ += ", frontend_attributes=" + PrintDictionary(instruction.frontend_attributes);
  }
  PrintControl(instruction);
  const bool custom_call = instruction.Is(Opcode::kCustomCall);
  if (!options_.canonical) {
    for (const auto& [name, value] : instruction.unknown_attributes) text_ += fmt::format(", {}={}", name, value);
    if (options_.metadata && instruction.metadata != Metadata{})
      text_ += ", metadata=" + PrintMetadata(instruction.metadata);
  }
  // A custom call's configuration is part of what it computes.
  const std::string& config = custom_call ? instruction.As<attr::CustomCall>().opaque : instruction.backend_config;
  const bool print_config = custom_call || (options_.backend_config && !options_.canonical);
  if (print_config && !config.empty()) text_ += ", backend_config=" + PrintText(config);
}

void Printer::Print(const Instruction& instruction) {
  if (instruction.IsRoot()) text_ += "ROOT ";
  text_ += fmt::format("%{} = {} {}(", NameOf(instruction), instruction.shape().ToString(),
                       OpcodeName(instruction.opcode()));
  PrintOperands(instruction);
  text_ += ')';
  text_ += PrintPayload(instruction);
  PrintCalled(instruction);
  PrintCommon(instruction);
}

}  // namespace

std::string PrintModule(const Module& module, const PrintOptions& options) {
  Printer printer(options);
  printer.Print(module);
  return printer.TakeText();
}

std::string PrintComputation(const Computation& computation, const PrintOptions& options) {
  Printer printer(options);
  printer.Print(computation);
  return printer.TakeText();
}

std::string PrintInstruction(const Instruction& instruction, const PrintOptions& options) {
  Printer printer(options);
  printer.Print(instruction);
  return printer.TakeText();
}

}  // namespace hlorun::hlo
