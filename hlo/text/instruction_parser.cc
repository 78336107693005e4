#include "hlo/text/instruction_parser.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "hlo/shape_inference.h"
#include "hlo/text/attribute_fields.h"
#include "hlo/text/metadata_text.h"
#include "hlo/text/shape_reader.h"

namespace hlorun::hlo {
namespace {

constexpr int kMaxNesting = 200;  // of instructions written in the place of an operand

// Attributes that nothing here reads: they are printed as they came.
constexpr std::array<std::string_view, 3> kKeptAsText = {"origin", "result_accuracy", "statistics"};

// XLA prints an async chain around one instruction under that instruction's name: "slice-start(...)".
struct AsyncSugar {
  Opcode async;  // kAsyncStart, kAsyncUpdate or kAsyncDone
  Opcode wrapped;
};

bool IsAsyncChain(Opcode opcode) {
  return opcode == Opcode::kAsyncStart || opcode == Opcode::kAsyncUpdate || opcode == Opcode::kAsyncDone;
}

std::optional<AsyncSugar> AsyncSugarOf(std::string_view word) {
  static constexpr std::pair<std::string_view, Opcode> kSuffixes[] = {
      {"-start", Opcode::kAsyncStart}, {"-update", Opcode::kAsyncUpdate}, {"-done", Opcode::kAsyncDone}};
  for (const auto& [suffix, opcode] : kSuffixes) {
    if (!word.ends_with(suffix)) continue;
    const std::optional<Opcode> wrapped = OpcodeFromName(word.substr(0, word.size() - suffix.size()));
    if (wrapped && *wrapped != Opcode::kParameter && *wrapped != Opcode::kConstant && !IsAsyncChain(*wrapped))
      return AsyncSugar{opcode, *wrapped};
  }
  return std::nullopt;
}

// A configuration is a JSON dictionary as it is, or any text as a string.
std::string ReadConfig(Lexer& lexer) {
  if (lexer.Is('{')) return std::string(lexer.ExpectBalanced("'{'"));
  return lexer.ExpectString("a configuration as a string or in braces");
}

}  // namespace

struct InstructionParser::Parsed {
  Opcode opcode = Opcode::kTuple;
  std::optional<Opcode> wrapped;  // of async sugar
  size_t opcode_offset = 0;
  std::optional<Shape> shape;
  std::vector<Instruction*> operands;
  Attributes attributes;
  std::vector<Computation*> called;
  int64_t parameter_number = 0;
  Literal literal;
  Instruction* wrapped_instruction = nullptr;
};

void InstructionParser::ParseNamed() {
  const size_t start = lexer_.offset();
  const bool is_root = lexer_.AcceptWord("ROOT");
  lexer_.Accept('%');
  const size_t name_offset = lexer_.offset();
  const std::string_view name = lexer_.ExpectWord("an instruction");
  const auto previous = instructions_.find(name);
  if (previous != instructions_.end()) {
    lexer_.FailAt(name_offset,
                  fmt::format("%{} is already defined on line {}", name, lexer_.LineOf(previous->second.second)));
  }
  lexer_.Expect('=', fmt::format("'=' behind {}", name));
  last_ = ParseRightHandSide(name, name_offset, 0);
  if (!is_root) return;
  if (root_ != nullptr) lexer_.FailAt(start, "this computation already has a ROOT");
  root_ = last_;
}

void InstructionParser::ParseUnnamed() { last_ = ParseRightHandSide({}, lexer_.offset(), 0); }

void InstructionParser::Finish(size_t offset) {
  computation_->set_root(root_ != nullptr ? root_ : last_);
  for (int64_t i = 0; i < computation_->parameter_count(); ++i) {
    if (computation_->parameter(i) == nullptr) {
      lexer_.FailAt(offset, fmt::format("computation {} has {} parameters, but parameter({}) is missing",
                                        computation_->name(), computation_->parameter_count(), i));
    }
  }
}

void InstructionParser::ParseOpcode(Parsed& parsed) {
  parsed.opcode_offset = lexer_.offset();
  const std::string_view word = lexer_.ExpectWord("an opcode");
  if (const std::optional<Opcode> opcode = OpcodeFromName(word)) {
    parsed.opcode = *opcode;
  } else if (const std::optional<AsyncSugar> sugar = AsyncSugarOf(word)) {
    parsed.opcode = sugar->async;
    parsed.wrapped = sugar->wrapped;
  } else {
    lexer_.FailAt(parsed.opcode_offset, fmt::format("expected an opcode, but '{}' is none", word));
  }
}

Instruction* InstructionParser::ParseRightHandSide(std::string_view name, size_t name_offset, int depth) {
  if (depth > kMaxNesting) lexer_.FailHere(fmt::format("instructions are nested more than {} deep here", kMaxNesting));
  Parsed parsed;
  if (AtShape(lexer_)) parsed.shape = ReadShape(lexer_);
  ParseOpcode(parsed);
  lexer_.Expect('(', fmt::format("'(' behind {}", OpcodeName(parsed.opcode)));
  if (parsed.opcode == Opcode::kParameter) {
    ParseParameterNumber(parsed);
  } else if (parsed.opcode == Opcode::kConstant) {
    if (!parsed.shape) lexer_.FailAt(parsed.opcode_offset, "expected a shape before constant");
    parsed.literal = ReadLiteral(lexer_, *parsed.shape, scope_.elided);
  } else {
    ParseOperandList(parsed, depth);
  }
  lexer_.Expect(')', fmt::format("')' at the end of {}'s operands", OpcodeName(parsed.opcode)));
  AttributeList attributes = depth == 0 ? AttributeList(lexer_) : AttributeList::Empty(lexer_);
  ReadAttributes(parsed, attributes);
  if (!parsed.shape) InferMissingShape(parsed);

  auto instruction = std::make_unique<Instruction>(parsed.opcode, *parsed.shape, std::move(parsed.operands),
                                                   std::move(parsed.attributes), std::move(parsed.called));
  instruction->set_name(std::string(name));
  ReadCommonAttributes(parsed, attributes, instruction.get());
  Instruction* added = computation_->Add(std::move(instruction));
  if (scope_.source != nullptr) scope_.source->lines[added] = scope_.lines.LineOf(lexer_.text(), name_offset);
  if (!name.empty()) instructions_.emplace(name, std::pair(added, name_offset));
  return added;
}

void InstructionParser::ParseParameterNumber(Parsed& parsed) {
  const size_t offset = lexer_.offset();
  if (!parsed.shape) lexer_.FailAt(parsed.opcode_offset, "expected a shape before parameter");
  const int64_t number = lexer_.ExpectInt("the parameter's number");
  // A computation has fewer parameters than its text has characters.
  if (number < 0 || number >= static_cast<int64_t>(lexer_.text().size())) {
    lexer_.FailAt(offset, fmt::format("{} is not the number of a parameter", number));
  }
  if (number < computation_->parameter_count() && computation_->parameter(number) != nullptr) {
    lexer_.FailAt(offset, fmt::format("parameter({}) is already %{}", number, computation_->parameter(number)->name()));
  }
  parsed.parameter_number = number;
}

void InstructionParser::ParseOperandList(Parsed& parsed, int depth) {
  while (!lexer_.Is(')')) {
    if (!parsed.operands.empty()) lexer_.Expect(',', "',' or ')' between operands");
    parsed.operands.push_back(ParseOperand(depth));
  }
  CheckArity(parsed);
}

void InstructionParser::CheckArity(const Parsed& parsed) const {
  const int arity = InfoOf(parsed.opcode).arity;
  if (arity >= 0 && parsed.operands.size() != static_cast<size_t>(arity)) {
    lexer_.FailAt(parsed.opcode_offset, fmt::format("{} takes {} operand{}, but has {}", OpcodeName(parsed.opcode),
                                                    arity, arity == 1 ? "" : "s", parsed.operands.size()));
  }
}

// "%x", "x", "f32[2]{0} %x", or an instruction: "add(x, y)", "f32[2] add(x, y)".
Instruction* InstructionParser::ParseOperand(int depth) {
  Lexer ahead = lexer_;
  Shape shape;
  const bool has_shape = AtShape(ahead);
  if (has_shape) shape = ReadShape(ahead);
  const bool has_percent = ahead.Is('%');
  if (!has_percent && ahead.Peek().kind == TokenKind::kWord && ahead.FollowedBy('(')) {
    return ParseRightHandSide({}, lexer_.offset(), depth + 1);
  }
  lexer_ = ahead;
  if (define_unknown_operands_ && has_shape) {
    Lexer name = lexer_;
    const std::string_view word = name.ExpectName("an operand");
    if (!instructions_.contains(word)) {
      const size_t offset = lexer_.offset();
      lexer_ = name;
      Instruction* parameter = computation_->AddParameter(computation_->parameter_count(), shape, std::string(word));
      instructions_.emplace(word, std::pair(parameter, offset));
      return parameter;
    }
  }
  return FindInstruction(lexer_);
}

Instruction* InstructionParser::FindInstruction(Lexer& lexer) {
  lexer.Accept('%');
  const size_t offset = lexer.offset();
  const std::string_view name = lexer.ExpectWord("an operand");
  const auto it = instructions_.find(name);
  if (it == instructions_.end()) {
    lexer.FailAt(offset,
                 fmt::format("%{} is not defined before this line in computation {}", name, computation_->name()));
  }
  return it->second.first;
}

Computation* InstructionParser::FindComputation(Lexer& lexer) {
  lexer.Accept('%');
  const size_t offset = lexer.offset();
  const std::string_view name = lexer.ExpectWord("a computation");
  const auto it = scope_.computations.find(name);
  if (it == scope_.computations.end()) {
    lexer.FailAt(offset, fmt::format("computation {} is not defined above its use", name));
  }
  return it->second;
}

// "{%a, %b}", or one without braces.
std::vector<Computation*> InstructionParser::FindComputations(Lexer& lexer) {
  if (!lexer.Accept('{')) return {FindComputation(lexer)};
  std::vector<Computation*> found;
  while (!lexer.Accept('}')) {
    if (!found.empty()) lexer.Expect(',', "',' or '}' between computations");
    found.push_back(FindComputation(lexer));
  }
  return found;
}

std::vector<Computation*> InstructionParser::ReadCalled(const Parsed& parsed, AttributeList& attributes) {
  std::vector<Computation*> called;
  const auto take = [&](std::string_view name) {
    std::optional<Lexer> value = attributes.Take(name);
    if (!value) return false;
    const std::vector<Computation*> found = FindComputations(*value);
    value->ExpectEnd(fmt::format("nothing more in {}", name));
    called.insert(called.end(), found.begin(), found.end());
    return true;
  };
  const auto require = [&](std::string_view name) {
    if (take(name)) return;
    lexer_.FailAt(parsed.opcode_offset, fmt::format("{} needs the attribute {}=", OpcodeName(parsed.opcode), name));
  };
  if (!HasTrait(parsed.opcode, kCalls)) return called;
  if (parsed.opcode == Opcode::kConditional) {
    if (take("branch_computations")) return called;
    require("true_computation");
    require("false_computation");
  } else if (parsed.opcode == Opcode::kCustomCall) {
    if (!take("to_apply") && !take("called_computations")) take("calls");
  } else if (parsed.opcode == Opcode::kAsyncUpdate || parsed.opcode == Opcode::kAsyncDone) {
    take("calls");
  } else {
    for (std::string_view name : CalledNamesOf(parsed.opcode).names) {
      if (!name.empty()) require(name);
    }
  }
  return called;
}

void InstructionParser::ReadAttributes(Parsed& parsed, AttributeList& attributes) {
  if (parsed.wrapped && parsed.opcode == Opcode::kAsyncStart) {
    WrapAsync(parsed, attributes);
    return;
  }
  parsed.attributes = ReadPayload(parsed.opcode, attributes, lexer_, parsed.opcode_offset, scope_.elided);
  parsed.called = ReadCalled(parsed, attributes);
  switch (parsed.opcode) {
    case Opcode::kParameter: std::get<attr::Parameter>(parsed.attributes).number = parsed.parameter_number; break;
    case Opcode::kConstant: std::get<attr::Constant>(parsed.attributes).value = std::move(parsed.literal); break;
    case Opcode::kMap: {
      // A map is over all dimensions, and its text may leave them out.
      auto& dimensions = std::get<attr::Dimensions>(parsed.attributes).dimensions;
      if (dimensions.empty() && !parsed.operands.empty()) {
        dimensions.resize(parsed.operands[0]->shape().dimensions().size());
        std::iota(dimensions.begin(), dimensions.end(), 0);
      }
      break;
    }
    default:
      if (IsAsyncChain(parsed.opcode)) ReadAsyncChain(parsed, attributes);
      break;
  }
}

// The later steps of a chain take computation and thread from the step before.
void InstructionParser::ReadAsyncChain(Parsed& parsed, AttributeList&) {
  if (parsed.opcode == Opcode::kAsyncStart) return;
  const Instruction& previous = *parsed.operands[0];
  if (!previous.Is(Opcode::kAsyncStart) && !previous.Is(Opcode::kAsyncUpdate)) {
    lexer_.FailAt(parsed.opcode_offset, fmt::format("{} needs an async-start or async-update as its operand, not {}",
                                                    OpcodeName(parsed.opcode), OpcodeName(previous.opcode())));
  }
  const Computation* computation = previous.called();
  if (!parsed.called.empty() && parsed.called[0] != computation) {
    lexer_.FailAt(parsed.opcode_offset,
                  fmt::format("this step of an async chain calls {}, but the chain was started with {}",
                              parsed.called[0]->name(), computation->name()));
  }
  if (parsed.wrapped && !computation->root()->Is(*parsed.wrapped)) {
    lexer_.FailAt(parsed.opcode_offset,
                  fmt::format("this step of an async chain is of {}, but the chain was started with {}",
                              OpcodeName(*parsed.wrapped), OpcodeName(computation->root()->opcode())));
  }
  parsed.called = previous.called_computations();
  parsed.attributes = previous.attributes();
}

// "slice-start(x), slice={[0:4]}": the slice goes into a computation of its own.
void InstructionParser::WrapAsync(Parsed& parsed, AttributeList& attributes) {
  const bool fits = parsed.shape && parsed.shape->IsTuple() && parsed.shape->tuple_shapes().size() >= 2 &&
                    parsed.shape->tuple_shape(0).IsTuple();
  if (!fits) {
    lexer_.FailAt(parsed.opcode_offset,
                  "expected the shape ((operands), result, ...) before the start of an async chain");
  }
  parsed.attributes = ReadPayload(Opcode::kAsyncStart, attributes, lexer_, parsed.opcode_offset, scope_.elided);
  Computation* wrapper = scope_.module->AddComputation("async_wrapped");
  wrapper->execution_thread = std::get<attr::Async>(parsed.attributes).execution_thread;
  Parsed inner;
  inner.opcode = *parsed.wrapped;
  inner.opcode_offset = parsed.opcode_offset;
  for (const Instruction* operand : parsed.operands) {
    inner.operands.push_back(wrapper->AddParameter(wrapper->parameter_count(), operand->shape(), "async_param"));
  }
  CheckArity(inner);
  ReadAttributes(inner, attributes);
  parsed.wrapped_instruction = wrapper->Add(inner.opcode, parsed.shape->tuple_shape(1), std::move(inner.operands),
                                            std::move(inner.attributes), std::move(inner.called));
  wrapper->set_root(parsed.wrapped_instruction);
  parsed.called = {wrapper};
}

void InstructionParser::ReadCommonAttributes(Parsed& parsed, AttributeList& attributes, Instruction* instruction) {
  const auto read = [&](std::string_view name, const auto& reader) {
    std::optional<Lexer> value = attributes.Take(name);
    if (!value) return;
    reader(*value);
    value->ExpectEnd(fmt::format("nothing more in {}", name));
  };
  read("sharding", [&](Lexer& in) { instruction->sharding = ReadSharding(in); });
  read("frontend_attributes", [&](Lexer& in) { instruction->frontend_attributes = ReadFrontendAttributes(in); });
  read("metadata", [&](Lexer& in) { instruction->metadata = ReadMetadata(in); });
  read("backend_config", [&](Lexer& in) {
    const bool custom_call = instruction->Is(Opcode::kCustomCall);
    (custom_call ? instruction->MutableAs<attr::CustomCall>().opaque : instruction->backend_config) = ReadConfig(in);
  });
  read("control-predecessors", [&](Lexer& in) {
    in.Expect('{', "'{' of control-predecessors");
    while (!in.Accept('}')) {
      instruction->AddControlPredecessor(FindInstruction(in));
      if (!in.Is('}')) in.Expect(',', "',' or '}' between control-predecessors");
    }
  });
  instruction->unknown_attributes = attributes.TakeRest();
  for (const auto& [name, value] : instruction->unknown_attributes) {
    if (std::find(kKeptAsText.begin(), kKeptAsText.end(), name) != kKeptAsText.end()) continue;
    lexer_.FailAt(parsed.opcode_offset, fmt::format("{} has no attribute {}", OpcodeName(instruction->opcode()), name));
  }
  if (Instruction* wrapped = parsed.wrapped_instruction) {
    wrapped->metadata = instruction->metadata;
    wrapped->frontend_attributes = instruction->frontend_attributes;
    wrapped->backend_config = instruction->backend_config;
  }
}

void InstructionParser::InferMissingShape(Parsed& parsed) {
  try {
    parsed.shape = InferShape(parsed.opcode, parsed.operands, parsed.attributes, parsed.called, Shape());
  } catch (const Error& error) {
    lexer_.FailAt(parsed.opcode_offset, error.message(), error.code());
  }
}

std::map<std::string, std::string> ReadFrontendAttributes(Lexer& lexer) {
  std::map<std::string, std::string> attributes;
  lexer.Expect('{', "'{' of frontend_attributes");
  while (!lexer.Accept('}')) {
    if (!attributes.empty()) lexer.Expect(',', "',' or '}' between frontend attributes");
    const std::string name(lexer.ExpectWord("a frontend attribute's name"));
    lexer.Expect('=', fmt::format("'=' behind {}", name));
    attributes[name] = ReadConfig(lexer);
  }
  return attributes;
}

}  // namespace hlorun::hlo
