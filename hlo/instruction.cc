#include "hlo/instruction.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "hlo/computation.h"
#include "hlo/error.h"
#include "hlo/module.h"

namespace hlorun::hlo {

Instruction::Instruction(Opcode opcode, Shape shape, std::vector<Instruction*> operands, Attributes attributes,
                         std::vector<Computation*> called)
    : opcode_(opcode),
      shape_(std::move(shape)),
      operands_(std::move(operands)),
      attributes_(std::move(attributes)),
      called_(std::move(called)) {
  for (Instruction* operand : operands_) operand->AddUser(this);
}

Instruction::~Instruction() = default;

int64_t Instruction::OperandIndex(const Instruction* operand) const {
  const auto it = std::find(operands_.begin(), operands_.end(), operand);
  return it == operands_.end() ? -1 : it - operands_.begin();
}

bool Instruction::IsDead() const { return users_.empty() && control_successors_.empty() && !IsRoot(); }

void Instruction::AddUser(Instruction* user) {
  // It is known already where another operand slot of its names this; whichever list is shorter tells.
  const auto& operands = user->operands_;
  const bool known = users_.size() < operands.size()
                         ? std::find(users_.begin(), users_.end(), user) != users_.end()
                         : std::count(operands.begin(), operands.end(), this) > 1 &&
                               std::find(users_.begin(), users_.end(), user) != users_.end();
  if (!known) users_.push_back(user);
}

void Instruction::RemoveUser(Instruction* user) {
  if (user->OperandIndex(this) >= 0) return;  // still used through another operand slot
  // From the back: passes that remove users before operands come upon the last one first.
  const auto it = std::find(users_.rbegin(), users_.rend(), user);
  if (it != users_.rend()) users_.erase(std::next(it).base());
}

void Instruction::ReplaceOperand(int64_t i, Instruction* with) {
  Instruction* old = operands_[static_cast<size_t>(i)];
  if (old == with) return;
  operands_[static_cast<size_t>(i)] = with;
  old->RemoveUser(this);
  with->AddUser(this);
}

void Instruction::AppendOperand(Instruction* operand) {
  operands_.push_back(operand);
  operand->AddUser(this);
}

void Instruction::RemoveOperand(int64_t i) {
  Instruction* old = operands_[static_cast<size_t>(i)];
  operands_.erase(operands_.begin() + i);
  old->RemoveUser(this);
}

void Instruction::ReplaceUseWith(Instruction* user, Instruction* with) {
  for (int64_t i = 0; i < user->operand_count(); ++i) {
    if (user->operand(i) == this) user->ReplaceOperand(i, with);
  }
}

void Instruction::ReplaceAllUsesWith(Instruction* with) {
  if (with == this) return;
  const std::vector<Instruction*> users = users_;
  for (Instruction* user : users) {
    if (user != with) ReplaceUseWith(user, with);
  }
  if (IsRoot()) parent_->set_root(with);
  for (Instruction* predecessor : control_predecessors_) {
    if (predecessor != with) with->AddControlPredecessor(predecessor);
  }
  for (Instruction* successor : control_successors_) {
    if (successor != with) successor->AddControlPredecessor(with);
  }
  DropControlEdges();
}

void Instruction::set_called(int64_t i, Computation* computation) {
  if (static_cast<size_t>(i) >= called_.size()) called_.resize(static_cast<size_t>(i) + 1);
  called_[static_cast<size_t>(i)] = computation;
}

void Instruction::AddControlPredecessor(Instruction* predecessor) {
  auto& mine = control_predecessors_;
  if (std::find(mine.begin(), mine.end(), predecessor) != mine.end()) return;
  mine.push_back(predecessor);
  predecessor->control_successors_.push_back(this);
}

void Instruction::DropControlEdges() {
  for (Instruction* p : control_predecessors_) std::erase(p->control_successors_, this);
  for (Instruction* s : control_successors_) std::erase(s->control_predecessors_, this);
  control_predecessors_.clear();
  control_successors_.clear();
}

Module* Instruction::module() const { return parent_ == nullptr ? nullptr : parent_->module(); }

bool Instruction::IsRoot() const { return parent_ != nullptr && parent_->root() == this; }

bool Instruction::HasSideEffect() const {
  const auto has_own = [](const Instruction& instruction) {
    return instruction.Has(kSideEffect) || instruction.Has(kCollective) ||
           (instruction.Is(Opcode::kCustomCall) && instruction.As<attr::CustomCall>().has_side_effect);
  };
  if (has_own(*this)) return true;
  if (called_.empty()) return false;
  // Each computation once: calls of calls may name one exponentially often.
  std::unordered_set<const Computation*> seen(called_.begin(), called_.end());
  std::vector<const Computation*> work(seen.begin(), seen.end());
  while (!work.empty()) {
    const Computation* callee = work.back();
    work.pop_back();
    for (const auto& inner : callee->instructions()) {
      if (has_own(*inner)) return true;
      for (const Computation* next : inner->called_) {
        if (seen.insert(next).second) work.push_back(next);
      }
    }
  }
  return false;
}

bool Instruction::IsIdenticalTo(const Instruction& other) const {
  return opcode_ == other.opcode_ && operands_ == other.operands_ && called_ == other.called_ &&
         shape_.SameAs(other.shape_) && attributes_ == other.attributes_ && sharding == other.sharding &&
         backend_config == other.backend_config && frontend_attributes == other.frontend_attributes;
}

std::unique_ptr<Instruction> Instruction::CloneWithOperands(const Shape& shape,
                                                            std::vector<Instruction*> operands) const {
  auto clone = std::make_unique<Instruction>(opcode_, shape, std::move(operands), attributes_, called_);
  clone->name_ = name_;
  clone->metadata = metadata;
  clone->sharding = sharding;
  clone->frontend_attributes = frontend_attributes;
  clone->backend_config = backend_config;
  clone->unknown_attributes = unknown_attributes;
  return clone;
}

std::string Instruction::ToString() const {
  std::string text = fmt::format("%{} = {} {}(", name_, shape_.ToString(false), OpcodeName(opcode_));
  for (size_t i = 0; i < operands_.size(); ++i) {
    text += fmt::format("{}%{}", i > 0 ? ", " : "", operands_[i]->name());
  }
  return text + ")";
}

}  // namespace hlorun::hlo
