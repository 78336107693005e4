#include "hlo/computation.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <unordered_set>

#include "hlo/error.h"
#include "hlo/module.h"

namespace hlorun::hlo {

Computation::~Computation() = default;

Instruction* Computation::Add(std::unique_ptr<Instruction> instruction, Instruction* before) {
  Instruction* added = instruction.get();
  added->parent_ = this;
  std::string base = added->name_.empty() ? std::string(OpcodeName(added->opcode())) : added->name_;
  added->name_ = module_ != nullptr ? module_->UniqueName(base) : base;
  if (added->Is(Opcode::kParameter)) {
    const auto number = static_cast<size_t>(added->parameter_number());
    if (parameters_.size() <= number) parameters_.resize(number + 1, nullptr);
    parameters_[number] = added;
  }
  const auto at = before == nullptr ? instructions_.end() : before->position_;
  added->position_ = instructions_.insert(at, std::move(instruction));
  return added;
}

Instruction* Computation::Add(Opcode opcode, Shape shape, std::vector<Instruction*> operands, Attributes attributes,
                              std::vector<Computation*> called) {
  return Add(std::make_unique<Instruction>(opcode, std::move(shape), std::move(operands), std::move(attributes),
                                           std::move(called)));
}

Instruction* Computation::AddConstant(Literal value) {
  Shape shape = value.shape();
  return Add(Opcode::kConstant, std::move(shape), {}, attr::Constant{std::move(value), false});
}

Instruction* Computation::AddParameter(int64_t number, const Shape& shape, const std::string& name) {
  auto parameter = std::make_unique<Instruction>(Opcode::kParameter, shape, std::vector<Instruction*>{},
                                                 attr::Parameter{number, {}});
  parameter->set_name(name);
  return Add(std::move(parameter));
}

void Computation::Remove(Instruction* instruction) {
  HLORUN_CHECK(instruction->parent_ == this && instruction->users_.empty() && root_ != instruction);
  instruction->DropControlEdges();
  const std::vector<Instruction*> operands = std::move(instruction->operands_);
  instruction->operands_.clear();
  for (Instruction* operand : operands) operand->RemoveUser(instruction);
  if (instruction->Is(Opcode::kParameter))
    std::replace(parameters_.begin(), parameters_.end(), instruction, static_cast<Instruction*>(nullptr));
  if (module_ != nullptr) module_->ForgetName(instruction->name_);
  instructions_.erase(instruction->position_);
}

void Computation::RemoveWithDeadOperands(Instruction* instruction) {
  std::vector<Instruction*> work = {instruction};
  while (!work.empty()) {
    Instruction* next = work.back();
    work.pop_back();
    if (!next->IsDead() || next->Is(Opcode::kParameter) || next->HasSideEffect()) continue;
    std::vector<Instruction*> operands;
    for (Instruction* operand : next->operands()) {
      if (std::find(operands.begin(), operands.end(), operand) == operands.end()) operands.push_back(operand);
    }
    Remove(next);
    // Each is pushed once: by the removal of its last user.
    std::copy_if(operands.begin(), operands.end(), std::back_inserter(work),
                 [](Instruction* o) { return o->IsDead(); });
  }
}

void Computation::Replace(Instruction* old, Instruction* with) {
  if (with->metadata == Metadata{}) with->metadata = old->metadata;
  if (!with->sharding.has_value() && with->shape().SameAs(old->shape())) with->sharding = old->sharding;
  old->ReplaceAllUsesWith(with);
  if (!old->Is(Opcode::kParameter)) Remove(old);
}

Instruction* Computation::ReplaceWithNew(Instruction* old, std::unique_ptr<Instruction> with) {
  Instruction* added = Add(std::move(with), old);
  Replace(old, added);
  return added;
}

namespace {

enum class State : uint8_t { kNew, kOpen, kDone };

// A state for each instruction: a hash table with open addressing, for a map of nodes costs more than the walk itself.
class States {
 public:
  explicit States(size_t count) : slots_(std::bit_ceil(2 * count + 16)) {}

  // Valid until the next call.
  State& operator[](const Instruction* instruction) {
    if (2 * used_ >= slots_.size()) Grow();
    Slot& slot = Find(instruction);
    if (slot.instruction == nullptr) {
      slot.instruction = instruction;
      ++used_;
    }
    return slot.state;
  }

 private:
  struct Slot {
    const Instruction* instruction = nullptr;
    State state = State::kNew;
  };

  Slot& Find(const Instruction* instruction) {
    const size_t mask = slots_.size() - 1;
    // Addresses differ in their middle bits.
    size_t at = (reinterpret_cast<uintptr_t>(instruction) >> 4) * 0x9e3779b97f4a7c15u >> 20;
    while (slots_[at & mask].instruction != nullptr && slots_[at & mask].instruction != instruction) ++at;
    return slots_[at & mask];
  }

  // Only a broken graph names instructions of other computations.
  void Grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.instruction != nullptr) Find(slot.instruction) = slot;
    }
  }

  std::vector<Slot> slots_;
  size_t used_ = 0;
};

}  // namespace

std::vector<Instruction*> Computation::PostOrder() const {
  States state(instructions_.size());
  std::vector<Instruction*> order;
  order.reserve(instructions_.size());
  std::vector<Instruction*> stack;
  for (const auto& start : instructions_) {
    if (state[start.get()] == State::kDone) continue;
    stack.push_back(start.get());
    while (!stack.empty()) {
      Instruction* top = stack.back();
      State& mine = state[top];
      if (mine == State::kDone) {
        stack.pop_back();
        continue;
      }
      const bool was_open = mine == State::kOpen;
      mine = State::kOpen;  // the last use of the reference
      bool ready = true;
      const auto visit = [&](Instruction* before) {
        const State theirs = state[before];
        if (theirs == State::kDone) return;
        if (was_open && theirs == State::kOpen) Invalid("the graph has a cycle through %{}", before->name());
        ready = false;
        stack.push_back(before);
      };
      // Pushed last, visited first: reversed, so that the first operand comes first.
      for (auto it = top->control_predecessors().rbegin(); it != top->control_predecessors().rend(); ++it) visit(*it);
      for (auto it = top->operands().rbegin(); it != top->operands().rend(); ++it) visit(*it);
      if (ready) {
        state[top] = State::kDone;
        order.push_back(top);
        stack.pop_back();
      }
    }
  }
  return order;
}

void Computation::SetOrder(const std::vector<Instruction*>& order) {
  HLORUN_CHECK(order.size() == instructions_.size());
  for (Instruction* instruction : order) {
    instructions_.splice(instructions_.end(), instructions_, instruction->position_);
  }
}

void Computation::RemoveParameter(int64_t number) {
  Instruction* parameter = parameters_[static_cast<size_t>(number)];
  Remove(parameter);
  parameters_.erase(parameters_.begin() + number);
  for (size_t i = static_cast<size_t>(number); i < parameters_.size(); ++i) {
    parameters_[i]->MutableAs<attr::Parameter>().number = static_cast<int64_t>(i);
  }
}

ProgramShape Computation::program_shape() const {
  ProgramShape shape;
  for (const Instruction* parameter : parameters_) {
    shape.parameters.push_back(parameter->shape());
    shape.parameter_names.push_back(parameter->name());
  }
  if (root_ != nullptr) shape.result = root_->shape();
  return shape;
}

Instruction* Computation::CloneInto(Computation* into, InstructionMap& map, const ComputationMap& computations) const {
  // Scheduled computations keep their order; an unscheduled one may list users before operands.
  for (Instruction* original : PostOrder()) {
    if (map.contains(original)) continue;
    std::vector<Instruction*> operands;
    operands.reserve(original->operands().size());
    for (Instruction* operand : original->operands()) operands.push_back(map.at(operand));
    std::unique_ptr<Instruction> clone = original->CloneWithOperands(original->shape(), std::move(operands));
    for (size_t i = 0; i < original->called_computations().size(); ++i) {
      const auto it = computations.find(original->called(static_cast<int64_t>(i)));
      if (it != computations.end()) clone->set_called(static_cast<int64_t>(i), it->second);
    }
    Instruction* added = into->Add(std::move(clone));
    map[original] = added;
    for (Instruction* predecessor : original->control_predecessors()) {
      added->AddControlPredecessor(map.at(predecessor));
    }
  }
  return map.at(root_);
}

bool Computation::is_fusion_computation() const {
  for (const auto& caller : module_->computations()) {
    for (const auto& instruction : caller->instructions()) {
      if (instruction->Is(Opcode::kFusion) && instruction->called() == this) return true;
    }
  }
  return false;
}

}  // namespace hlorun::hlo
