// The instructions of one computation.
#pragma once

#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hlo/module.h"
#include "hlo/module_source.h"
#include "hlo/text/attribute_reader.h"
#include "hlo/text/lexer.h"
#include "hlo/text/line_counter.h"

namespace hlorun::hlo {

// What the computations of a module share while it is parsed. Names are views into the text.
struct ModuleScope {
  Module* module;
  std::unordered_map<std::string_view, Computation*> computations;  // complete ones: text defines before it uses
  ElidedValues* elided;                                             // null: an elided constant is an error
  ModuleSource* source;                                             // null: nobody asks for lines
  LineCounter lines;
};

class InstructionParser {
 public:
  InstructionParser(Lexer& lexer, ModuleScope& scope, Computation* computation)
      : lexer_(lexer), scope_(scope), computation_(computation) {}

  // In the text of a single instruction, operands that are not defined are parameters.
  void DefineUnknownOperands() { define_unknown_operands_ = true; }
  // "[ROOT] [%]name = shape opcode(operands), attributes"
  void ParseNamed();
  // "shape opcode(operands), attributes", without a name
  void ParseUnnamed();
  // Sets the root and checks that parameters are numbered without gaps; `offset` is where a message points.
  void Finish(size_t offset);

 private:
  struct Parsed;  // the parts of an instruction, before it exists

  Instruction* ParseRightHandSide(std::string_view name, size_t name_offset, int depth);
  void ParseOpcode(Parsed& parsed);
  void ParseOperandList(Parsed& parsed, int depth);
  void CheckArity(const Parsed& parsed) const;
  Instruction* ParseOperand(int depth);
  void ParseParameterNumber(Parsed& parsed);
  void ReadAttributes(Parsed& parsed, AttributeList& attributes);
  void ReadCommonAttributes(Parsed& parsed, AttributeList& attributes, Instruction* instruction);
  std::vector<Computation*> ReadCalled(const Parsed& parsed, AttributeList& attributes);
  void ReadAsyncChain(Parsed& parsed, AttributeList& attributes);
  void WrapAsync(Parsed& parsed, AttributeList& attributes);
  void InferMissingShape(Parsed& parsed);
  Computation* FindComputation(Lexer& lexer);
  std::vector<Computation*> FindComputations(Lexer& lexer);
  Instruction* FindInstruction(Lexer& lexer);

  Lexer& lexer_;
  ModuleScope& scope_;
  Computation* computation_;
  std::unordered_map<std::string_view, std::pair<Instruction*, size_t>> instructions_;  // and where each is defined
  Instruction* root_ = nullptr;
  Instruction* last_ = nullptr;
  bool define_unknown_operands_ = false;
};

std::map<std::string, std::string> ReadFrontendAttributes(Lexer& lexer);

}  // namespace hlorun::hlo
