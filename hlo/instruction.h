// Instruction: one node of the IR.
//
// Owned by its Computation (stable address, in a list whose order is the text's, and the schedule once the module is
// scheduled). `operands` and `users` are kept consistent by the functions below; users are unique and in the order in
// which they began to use this instruction.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hlo/attributes.h"
#include "hlo/opcode.h"
#include "hlo/shape.h"
#include "hlo/sharding.h"

namespace hlorun::hlo {

class Computation;
class Module;

// Where an instruction came from, in the user's program. Prints as metadata={...}.
struct Metadata {
  std::string op_type;
  std::string op_name;
  std::string source_file;
  int64_t source_line = 0;
  int64_t source_end_line = 0;
  int64_t source_column = 0;
  int64_t source_end_column = 0;
  int64_t stack_frame_id = 0;  // index into the module's StackFrames, from 1; 0 for none
  std::string deduplicated_name;
  std::string scheduling_name;
  bool preserve_layout = false;
  std::string verbatim;  // further fields as written; empty for none
  bool operator==(const Metadata&) const = default;
};

class Instruction {
 public:
  Instruction(Opcode opcode, Shape shape, std::vector<Instruction*> operands, Attributes attributes = attr::None{},
              std::vector<Computation*> called = {});
  ~Instruction();
  Instruction(const Instruction&) = delete;
  Instruction& operator=(const Instruction&) = delete;

  Opcode opcode() const { return opcode_; }
  bool Is(Opcode opcode) const { return opcode_ == opcode; }
  bool Has(OpcodeTrait trait) const { return HasTrait(opcode_, trait); }
  const std::string& name() const { return name_; }  // unique in the module, without '%'
  void set_name(std::string name) { name_ = std::move(name); }
  const Shape& shape() const { return shape_; }
  Shape& mutable_shape() { return shape_; }
  void set_shape(Shape shape) { shape_ = std::move(shape); }

  const std::vector<Instruction*>& operands() const { return operands_; }
  Instruction* operand(int64_t i) const { return operands_[static_cast<size_t>(i)]; }
  int64_t operand_count() const { return static_cast<int64_t>(operands_.size()); }
  int64_t OperandIndex(const Instruction* operand) const;  // -1 when it is none
  const std::vector<Instruction*>& users() const { return users_; }
  bool IsDead() const;  // no users, not the root, no control successors
  void ReplaceOperand(int64_t i, Instruction* with);
  void AppendOperand(Instruction* operand);
  void RemoveOperand(int64_t i);
  // Every use, and the computation's root if this is it, becomes `with`. Control edges move along.
  void ReplaceAllUsesWith(Instruction* with);
  void ReplaceUseWith(Instruction* user, Instruction* with);

  const Attributes& attributes() const { return attributes_; }
  void set_attributes(Attributes attributes) { attributes_ = std::move(attributes); }
  template <typename T>
  const T& As() const {
    return std::get<T>(attributes_);
  }
  template <typename T>
  T& MutableAs() {
    return std::get<T>(attributes_);
  }
  const std::vector<int64_t>& dimensions() const { return As<attr::Dimensions>().dimensions; }
  const Literal& literal() const { return As<attr::Constant>().value; }
  int64_t parameter_number() const { return As<attr::Parameter>().number; }
  int64_t tuple_index() const { return As<attr::TupleIndex>().index; }

  // Called computations, by opcode: call, reduce, map, sort, scatter, fusion, ...: {to_apply}; while: {condition,
  // body}; conditional: the branches; select-and-scatter: {select, scatter}. Not owned.
  const std::vector<Computation*>& called_computations() const { return called_; }
  Computation* called(int64_t i = 0) const { return called_[static_cast<size_t>(i)]; }
  void set_called(int64_t i, Computation* computation);
  Computation* while_condition() const { return called_[0]; }
  Computation* while_body() const { return called_[1]; }

  const std::vector<Instruction*>& control_predecessors() const { return control_predecessors_; }
  const std::vector<Instruction*>& control_successors() const { return control_successors_; }
  void AddControlPredecessor(Instruction* predecessor);
  void DropControlEdges();

  Computation* parent() const { return parent_; }
  Module* module() const;
  bool IsRoot() const;
  // True when it, or a computation it calls, has an effect besides its result (side effects, collectives).
  bool HasSideEffect() const;
  bool IsConstant() const { return opcode_ == Opcode::kConstant; }
  // Same opcode, shape, attributes, operands and called computations (compared by pointer).
  bool IsIdenticalTo(const Instruction& other) const;

  // A copy with other operands, in no computation yet; called computations are shared. Keeps name and metadata.
  std::unique_ptr<Instruction> CloneWithOperands(const Shape& shape, std::vector<Instruction*> operands) const;

  Metadata metadata;
  std::optional<Sharding> sharding;
  std::map<std::string, std::string> frontend_attributes;
  std::string backend_config;  // as written, braces included; empty for none
  // Attributes that hlorun keeps but does not interpret (origin, statistics, result_accuracy ...): name -> text.
  std::vector<std::pair<std::string, std::string>> unknown_attributes;

  std::string ToString() const;  // "%name = shape opcode(...)", for messages

 private:
  friend class Computation;
  void AddUser(Instruction* user);
  void RemoveUser(Instruction* user);

  Opcode opcode_;
  std::string name_;
  Shape shape_;
  std::vector<Instruction*> operands_;
  std::vector<Instruction*> users_;
  Attributes attributes_;
  std::vector<Computation*> called_;
  std::vector<Instruction*> control_predecessors_;
  std::vector<Instruction*> control_successors_;
  Computation* parent_ = nullptr;
  std::list<std::unique_ptr<Instruction>>::iterator position_;
};

}  // namespace hlorun::hlo
