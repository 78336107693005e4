// Computation: a list of instructions with one root, a number of parameters, and an owner module.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "hlo/instruction.h"

namespace hlorun::hlo {

using InstructionMap = std::unordered_map<const Instruction*, Instruction*>;
using ComputationMap = std::unordered_map<const Computation*, Computation*>;

class Computation {
 public:
  explicit Computation(std::string name) : name_(std::move(name)) {}
  ~Computation();
  Computation(const Computation&) = delete;
  Computation& operator=(const Computation&) = delete;

  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  Module* module() const { return module_; }

  // Appends (or inserts before `before`), takes ownership, gives it a module-unique name when it has none or a taken
  // one.
  Instruction* Add(std::unique_ptr<Instruction> instruction, Instruction* before = nullptr);
  Instruction* Add(Opcode opcode, Shape shape, std::vector<Instruction*> operands, Attributes attributes = attr::None{},
                   std::vector<Computation*> called = {});
  Instruction* AddConstant(Literal value);
  Instruction* AddParameter(int64_t number, const Shape& shape, const std::string& name);
  // Must have no users, not be the root. Control edges are dropped.
  void Remove(Instruction* instruction);
  // Removes it if dead, then its operands that became so (never parameters, never side effects).
  void RemoveWithDeadOperands(Instruction* instruction);
  // Replaces `old`, everywhere and as root, and removes it; the replacement inherits metadata and sharding if it has
  // none.
  void Replace(Instruction* old, Instruction* with);
  Instruction* ReplaceWithNew(Instruction* old, std::unique_ptr<Instruction> with);

  // In list order: the text's, and the schedule's once scheduled.
  const std::list<std::unique_ptr<Instruction>>& instructions() const { return instructions_; }
  int64_t instruction_count() const { return static_cast<int64_t>(instructions_.size()); }
  // A copy of the pointers, so that the caller may add and remove while it walks; operands and control predecessors
  // come before users. Stable: follows list order where dependencies allow. Throws Error on a cycle.
  std::vector<Instruction*> PostOrder() const;
  // Puts the list into this order, which must be a permutation of all instructions.
  void SetOrder(const std::vector<Instruction*>& order);

  Instruction* root() const { return root_; }
  void set_root(Instruction* root) { root_ = root; }
  const std::vector<Instruction*>& parameters() const { return parameters_; }
  Instruction* parameter(int64_t i) const { return parameters_[static_cast<size_t>(i)]; }
  int64_t parameter_count() const { return static_cast<int64_t>(parameters_.size()); }
  // Removes an unused parameter and renumbers the rest.
  void RemoveParameter(int64_t number);
  ProgramShape program_shape() const;

  // Copies all instructions into `into` (another, empty computation), mapping operands through `map`, which may hold
  // replacements for parameters beforehand (those are then not copied); called computations go through `computations`
  // where it has an entry, else are shared. Returns the image of the root. Fills `map`.
  Instruction* CloneInto(Computation* into, InstructionMap& map, const ComputationMap& computations = {}) const;

  std::string execution_thread;        // empty: main
  bool is_fusion_computation() const;  // called by a fusion

 private:
  friend class Module;
  std::string name_;
  Module* module_ = nullptr;
  std::list<std::unique_ptr<Instruction>> instructions_;
  std::vector<Instruction*> parameters_;
  Instruction* root_ = nullptr;
  std::list<std::unique_ptr<Computation>>::iterator position_;
};

}  // namespace hlorun::hlo
