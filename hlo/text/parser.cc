#include "hlo/text/parser.h"

#include "hlo/text/attribute_reader.h"
#include "hlo/text/instruction_parser.h"
#include "hlo/text/lexer.h"
#include "hlo/text/metadata_text.h"
#include "hlo/text/shape_reader.h"

namespace hlorun::hlo {
namespace {

std::vector<bool> ReadBools(Lexer& lexer) {
  std::vector<bool> values;
  lexer.Expect('{', "'{' of a list of true and false");
  while (!lexer.Is('}')) {
    values.push_back(lexer.ExpectBool("true or false"));
    if (!lexer.Accept(',')) break;
  }
  lexer.Expect('}', "',' or '}'");
  return values;
}

// { {0}: (17, {}, may-alias), ... }
std::vector<AliasEntry> ReadAliases(Lexer& lexer) {
  std::vector<AliasEntry> aliases;
  lexer.Expect('{', "'{' of aliases");
  while (!lexer.Accept('}')) {
    if (!aliases.empty()) lexer.Expect(',', "',' or '}' between aliases");
    AliasEntry& alias = aliases.emplace_back();
    alias.output = ReadInts(lexer, "the output's index in braces");
    lexer.Expect(':', "':' in an alias");
    lexer.Expect('(', "'(' in an alias");
    alias.parameter = lexer.ExpectInt("a parameter's number");
    if (lexer.Accept(',')) alias.parameter_index = ReadInts(lexer, "the parameter's index in braces");
    if (lexer.Accept(',') && !lexer.AcceptWord("may-alias")) {
      alias.must_alias = lexer.AcceptWord("must-alias");
      if (!alias.must_alias) lexer.FailExpected("may-alias or must-alias");
    }
    lexer.Expect(')', "')' in an alias");
  }
  return aliases;
}

// { (0, {}), ... }
std::vector<DonorEntry> ReadDonors(Lexer& lexer) {
  std::vector<DonorEntry> donors;
  lexer.Expect('{', "'{' of donated parameters");
  while (!lexer.Accept('}')) {
    if (!donors.empty()) lexer.Expect(',', "',' or '}' between donated parameters");
    DonorEntry& donor = donors.emplace_back();
    lexer.Expect('(', "'(' of a donated parameter");
    donor.parameter = lexer.ExpectInt("a parameter's number");
    if (lexer.Accept(',')) donor.parameter_index = ReadInts(lexer, "the parameter's index in braces");
    lexer.Expect(')', "')' of a donated parameter");
  }
  return donors;
}

int64_t ReadDeviceCount(Lexer& lexer) {
  const size_t offset = lexer.offset();
  const int64_t count = lexer.ExpectInt("a number of devices");
  if (count < 1) lexer.FailAt(offset, fmt::format("{} is not a number of devices", count));
  return count;
}

class ModuleParser {
 public:
  ModuleParser(Lexer& lexer, const ParseOptions& options) : lexer_(lexer), options_(options) {}

  std::unique_ptr<Module> Parse();

 private:
  void ParseHeader();
  void ParseComputation();
  void ParseBareInstructions();
  bool AtBareInstruction() const;

  Lexer& lexer_;
  const ParseOptions& options_;
  ElidedValues elided_;
  std::unique_ptr<Module> module_;
  ModuleScope scope_{};
};

std::unique_ptr<Module> ModuleParser::Parse() {
  module_ = std::make_unique<Module>("module");
  scope_.module = module_.get();
  scope_.source = options_.source;
  scope_.elided = options_.fill_elided ? &elided_ : nullptr;
  const bool has_header = lexer_.AcceptWord("HloModule");
  if (has_header) {
    ParseHeader();
    ReadStackFrames(lexer_, module_->stack_frames);
  }
  if (lexer_.AtEnd()) lexer_.FailExpected(has_header ? "a computation" : "HloModule");
  if (AtBareInstruction()) {
    ParseBareInstructions();
  } else {
    while (!lexer_.AtEnd() && !lexer_.IsWord("HloModule")) ParseComputation();
  }
  // Without ENTRY the last computation is the entry, as for XLA.
  if (module_->computations().empty()) lexer_.FailExpected("a computation");
  if (module_->entry() == nullptr) module_->set_entry(module_->computations().back().get());
  if (!has_header) module_->set_name("module_" + module_->entry()->name());
  return std::move(module_);
}

void ModuleParser::ParseHeader() {
  module_->set_name(std::string(lexer_.ExpectName("the module's name")));
  AttributeList attributes(lexer_);
  const auto read = [&](std::string_view name, const auto& reader) {
    std::optional<Lexer> value = attributes.Take(name);
    if (!value) return;
    reader(*value);
    value->ExpectEnd(fmt::format("nothing more in {}", name));
  };
  Module& m = *module_;
  read("is_scheduled", [&](Lexer& in) { m.is_scheduled = in.ExpectBool("true or false"); });
  read("replica_count", [&](Lexer& in) { m.replica_count = ReadDeviceCount(in); });
  read("num_partitions", [&](Lexer& in) { m.num_partitions = ReadDeviceCount(in); });
  read("input_output_alias", [&](Lexer& in) { m.input_output_alias = ReadAliases(in); });
  read("buffer_donor", [&](Lexer& in) { m.buffer_donors = ReadDonors(in); });
  read("frontend_attributes", [&](Lexer& in) { m.frontend_attributes = ReadFrontendAttributes(in); });
  read("allow_spmd_sharding_propagation_to_parameters",
       [&](Lexer& in) { m.allow_spmd_sharding_propagation_to_parameters = ReadBools(in); });
  read("allow_spmd_sharding_propagation_to_output",
       [&](Lexer& in) { m.allow_spmd_sharding_propagation_to_output = ReadBools(in); });
  read("entry_computation_layout", [&](Lexer& in) {
    in.Expect('{', "'{' of entry_computation_layout");
    m.entry_layout = ReadProgramShape(in);
    in.Expect('}', "'}' of entry_computation_layout");
  });
  m.unknown_attributes = attributes.TakeRest();
}

// "[ENTRY] [%]name [(x: f32[2]) -> f32[2]] { instructions } [, execution_thread="..."]"
void ModuleParser::ParseComputation() {
  const size_t start = lexer_.offset();
  const bool is_entry = lexer_.AcceptWord("ENTRY");
  if (is_entry && module_->entry() != nullptr) lexer_.FailAt(start, "this module already has an ENTRY");
  lexer_.Accept('%');
  const size_t name_offset = lexer_.offset();
  const std::string_view name = lexer_.ExpectWord("a computation");
  if (scope_.computations.contains(name))
    lexer_.FailAt(name_offset, fmt::format("computation {} is already defined", name));

  std::optional<Shape> declared;
  size_t declared_offset = 0;
  if (lexer_.Is('(')) {
    lexer_.ExpectBalanced("'('");  // the parameters' names and shapes, which their instructions repeat
    lexer_.ExpectKind(TokenKind::kArrow, "'->' before the result's shape");
    declared_offset = lexer_.offset();
    declared = ReadShape(lexer_);
  }
  lexer_.Expect('{', fmt::format("'{{' before the instructions of {}", name));
  Computation* computation = module_->AddComputation(std::string(name));
  InstructionParser instructions(lexer_, scope_, computation);
  do {
    instructions.ParseNamed();
  } while (!lexer_.Is('}'));
  lexer_.Next();
  instructions.Finish(name_offset);
  if (declared && !declared->SameAs(computation->root()->shape())) {
    lexer_.FailAt(declared_offset,
                  fmt::format("the result is declared as {}, but the root %{} is {}", declared->ToString(false),
                              computation->root()->name(), computation->root()->shape().ToString(false)));
  }
  AttributeList attributes(lexer_);
  if (std::optional<Lexer> thread = attributes.Take("execution_thread")) {
    computation->execution_thread = thread->ExpectString("a thread's name as a string");
    if (computation->execution_thread == "main") computation->execution_thread.clear();
  }
  const auto rest = attributes.TakeRest();
  if (!rest.empty()) lexer_.FailAt(start, fmt::format("a computation has no attribute '{}'", rest[0].first));
  scope_.computations.emplace(name, computation);
  if (is_entry) module_->set_entry(computation);
}

bool ModuleParser::AtBareInstruction() const {
  Lexer ahead = lexer_;
  if (AtShape(ahead)) return true;
  ahead.AcceptWord("ROOT");
  ahead.Accept('%');
  if (ahead.Peek().kind != TokenKind::kWord) return false;
  ahead.Next();
  return ahead.Is('=');
}

// The instructions of the entry without anything around them, or a single one without a name.
void ModuleParser::ParseBareInstructions() {
  Computation* entry = module_->AddComputation("main");
  InstructionParser instructions(lexer_, scope_, entry);
  const size_t start = lexer_.offset();
  instructions.DefineUnknownOperands();
  if (AtShape(lexer_)) {
    instructions.ParseUnnamed();
  } else {
    while (!lexer_.AtEnd() && !lexer_.IsWord("HloModule")) instructions.ParseNamed();
  }
  if (!lexer_.AtEnd() && !lexer_.IsWord("HloModule")) lexer_.FailExpected("nothing behind a single instruction");
  instructions.Finish(start);
  module_->set_entry(entry);
}

}  // namespace

std::unique_ptr<Module> ParseModule(std::string_view text, const ParseOptions& options) {
  Lexer lexer(text, options.file_name);
  std::unique_ptr<Module> module = ModuleParser(lexer, options).Parse();
  lexer.ExpectEnd("nothing behind the module");
  return module;
}

std::vector<std::unique_ptr<Module>> ParseModules(std::string_view text, const ParseOptions& options) {
  Lexer lexer(text, options.file_name);
  std::vector<std::unique_ptr<Module>> modules;
  do {
    modules.push_back(ModuleParser(lexer, options).Parse());
  } while (!lexer.AtEnd());
  return modules;
}

}  // namespace hlorun::hlo
