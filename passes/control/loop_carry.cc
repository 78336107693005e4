#include "passes/control/loop_carry.h"

#include <algorithm>
#include <unordered_set>

#include "hlo/builder.h"
#include "hlo/module.h"
#include "passes/simplify/dce.h"

namespace hlorun::passes {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

namespace {

bool ElementsOnly(const Instruction* tuple) {
  return std::all_of(tuple->users().begin(), tuple->users().end(),
                     [](const Instruction* user) { return user->Is(Opcode::kGetTupleElement); });
}

std::vector<Instruction*> ElementsOf(const Instruction* tuple, int64_t index) {
  std::vector<Instruction*> elements;
  for (Instruction* user : tuple->users()) {
    if (user->Is(Opcode::kGetTupleElement) && user->tuple_index() == index) elements.push_back(user);
  }
  return elements;
}

// Uses of element `index` inside `computation`, its own passing on aside, become copies of `constant`.
bool ReplaceInside(Computation* computation, int64_t index, const Instruction& constant) {
  bool changed = false;
  for (Instruction* element : ElementsOf(computation->parameter(0), index)) {
    std::vector<Instruction*> users = element->users();
    // Passing it on is what makes it unchanging.
    std::erase_if(users, [&](const Instruction* user) { return user->IsRoot() && user->Is(Opcode::kTuple); });
    if (users.empty() && !element->IsRoot()) continue;
    Instruction* copy = computation->Add(constant.CloneWithOperands(constant.shape(), {}), element);
    for (Instruction* user : users) element->ReplaceUseWith(user, copy);
    if (element->IsRoot()) computation->set_root(copy);
    changed = true;
  }
  return changed;
}

// Marks the elements of the body that `work` depends on.
void MarkNeeded(const Computation& computation, std::vector<const Instruction*> work, std::vector<bool>& needed) {
  std::unordered_set<const Instruction*> seen(work.begin(), work.end());
  while (!work.empty()) {
    const Instruction* instruction = work.back();
    work.pop_back();
    if (instruction->Is(Opcode::kGetTupleElement) && instruction->operand(0) == computation.parameter(0)) {
      needed[static_cast<size_t>(instruction->tuple_index())] = true;
      continue;
    }
    for (const auto* list : {&instruction->operands(), &instruction->control_predecessors()}) {
      for (const Instruction* before : *list) {
        if (seen.insert(before).second) work.push_back(before);
      }
    }
  }
}

std::vector<bool> NeededElements(const Instruction& loop) {
  std::vector<bool> needed(loop.shape().tuple_shapes().size(), false);
  for (const Instruction* user : loop.users()) needed[static_cast<size_t>(user->tuple_index())] = true;
  MarkNeeded(*loop.while_condition(), {loop.while_condition()->root()}, needed);
  for (const Computation* computation : loop.called_computations()) {
    std::vector<const Instruction*> effects;
    for (const auto& instruction : computation->instructions()) {
      if (instruction->HasSideEffect()) effects.push_back(instruction.get());
    }
    MarkNeeded(*computation, std::move(effects), needed);
  }
  // Whatever a needed element is computed from is needed, too.
  for (size_t before = 0, after = 1; before != after;) {
    before = static_cast<size_t>(std::count(needed.begin(), needed.end(), true));
    for (size_t i = 0; i < needed.size(); ++i) {
      if (needed[i])
        MarkNeeded(*loop.while_body(), {loop.while_body()->root()->operand(static_cast<int64_t>(i))}, needed);
    }
    after = static_cast<size_t>(std::count(needed.begin(), needed.end(), true));
  }
  return needed;
}

// Shrinks the parameter of a condition or body to the kept elements.
void ShrinkParameter(Computation* computation, const std::vector<bool>& keep, const hlo::Shape& shape) {
  Instruction* parameter = computation->parameter(0);
  int64_t next = 0;
  for (size_t i = 0; i < keep.size(); ++i) {
    for (Instruction* element : ElementsOf(parameter, static_cast<int64_t>(i))) {
      if (keep[i]) {
        element->MutableAs<hlo::attr::TupleIndex>().index = -1 - next;  // apart from those not renumbered yet
      } else {
        computation->RemoveWithDeadOperands(element);
      }
    }
    next += keep[i] ? 1 : 0;
  }
  for (Instruction* element : parameter->users()) {
    int64_t& index = element->MutableAs<hlo::attr::TupleIndex>().index;
    index = -1 - index;
  }
  parameter->set_shape(shape);
}

Instruction* KeptElements(Instruction* tuple, const std::vector<bool>& keep) {
  std::vector<Instruction*> kept;
  for (size_t i = 0; i < keep.size(); ++i) {
    if (keep[i]) kept.push_back(tuple->operand(static_cast<int64_t>(i)));
  }
  hlo::Builder build(tuple->parent(), tuple);
  return build.Tuple(kept);
}

// The tuple with one more element, before `before`, or at the end.
Instruction* Longer(Instruction* tuple, Instruction* element, Instruction* before) {
  std::vector<Instruction*> elements = tuple->operands();
  elements.push_back(element);
  hlo::Builder build(tuple->parent(), tuple);
  build.before = before;
  return build.Tuple(std::move(elements));
}

}  // namespace

bool IsTakenApart(const Instruction& loop) {
  return loop.shape().IsTuple() && loop.operand(0)->Is(Opcode::kTuple) &&
         loop.while_body()->root()->Is(Opcode::kTuple) && !loop.while_body()->parameter(0)->IsRoot() &&
         ElementsOnly(loop.while_body()->parameter(0)) && ElementsOnly(loop.while_condition()->parameter(0));
}

bool IsPassedOn(const Instruction& loop, int64_t index) {
  const Instruction* next = loop.while_body()->root()->operand(index);
  return next->Is(Opcode::kGetTupleElement) && next->operand(0) == loop.while_body()->parameter(0) &&
         next->tuple_index() == index;
}

bool MayGrow(const Instruction& loop) {
  return IsTakenApart(loop) && ElementsOnly(&loop) && !loop.IsRoot() && loop.control_successors().empty();
}

Instruction* AddCarry(Instruction* loop, Instruction* value) {
  Instruction* init = Longer(loop->operand(0), value, loop);
  const auto index = static_cast<int64_t>(init->operand_count()) - 1;
  loop->ReplaceOperand(0, init);
  loop->set_shape(init->shape());
  for (Computation* computation : loop->called_computations()) computation->parameter(0)->set_shape(init->shape());
  Computation* body = loop->while_body();
  auto element =
      std::make_unique<Instruction>(Opcode::kGetTupleElement, value->shape(),
                                    std::vector<Instruction*>{body->parameter(0)}, hlo::attr::TupleIndex{index});
  Instruction* inside = body->Add(std::move(element));
  Instruction* next = body->root();
  body->set_root(Longer(next, inside, nullptr));
  body->RemoveWithDeadOperands(next);
  body->SetOrder(body->PostOrder());
  return inside;
}

std::unordered_set<const Instruction*> OnlyForTheCondition(const Instruction& loop) {
  const Computation& body = *loop.while_body();
  const Instruction* next = body.root();
  if (!loop.shape().IsTuple() || !next->Is(Opcode::kTuple) || !ElementsOnly(body.parameter(0))) return {};
  std::unordered_set<const Instruction*> needed;
  std::vector<const Instruction*> work;
  const auto need = [&](const Instruction* instruction) {
    if (needed.insert(instruction).second) work.push_back(instruction);
  };
  for (const auto& instruction : body.instructions()) {
    if (instruction->HasSideEffect()) need(instruction.get());
  }
  const bool whole = loop.IsRoot() || !ElementsOnly(&loop);
  for (int64_t i = 0; i < next->operand_count(); ++i) {
    if (whole || !ElementsOf(&loop, i).empty()) need(next->operand(i));
  }
  while (!work.empty()) {
    const Instruction* instruction = work.back();
    work.pop_back();
    if (instruction->Is(Opcode::kGetTupleElement) && instruction->operand(0) == body.parameter(0))
      need(next->operand(instruction->tuple_index()));  // in the trip before
    for (const auto* list : {&instruction->operands(), &instruction->control_predecessors()}) {
      for (const Instruction* before : *list) need(before);
    }
  }
  std::unordered_set<const Instruction*> others;
  for (const auto& instruction : body.instructions()) {
    if (!needed.contains(instruction.get()) && !instruction->IsRoot()) others.insert(instruction.get());
  }
  return others;
}

bool ForwardLoopInvariants(Instruction* loop) {
  if (!IsTakenApart(*loop)) return false;
  bool changed = false;
  for (int64_t i = 0; i < loop->operand(0)->operand_count(); ++i) {
    const Instruction* init = loop->operand(0)->operand(i);
    // A large constant is not copied into every loop that reads it.
    constexpr int64_t kSmallBytes = 1024;
    if (!IsPassedOn(*loop, i) || !init->IsConstant() || init->shape().ByteSize() > kSmallBytes) continue;
    for (Computation* computation : loop->called_computations()) changed |= ReplaceInside(computation, i, *init);
  }
  return changed;
}

bool ForwardPassedOn(Instruction* loop) {
  if (!IsTakenApart(*loop)) return false;
  bool changed = false;
  for (int64_t i = 0; i < loop->operand(0)->operand_count(); ++i) {
    Instruction* init = loop->operand(0)->operand(i);
    // A token stands for what the loop does.
    if (!IsPassedOn(*loop, i) || !init->shape().IsArray()) continue;
    for (Instruction* element : ElementsOf(loop, i)) {
      if (!element->control_predecessors().empty() || !element->control_successors().empty()) continue;
      loop->parent()->Replace(element, init);
      changed = true;
    }
  }
  return changed;
}

Instruction* RemoveDeadCarries(Instruction* loop) {
  if (!IsTakenApart(*loop) || loop->IsRoot() || !loop->control_successors().empty()) return nullptr;
  for (const Instruction* user : loop->users()) {
    if (!user->Is(Opcode::kGetTupleElement)) return nullptr;
  }
  for (Computation* computation : loop->called_computations()) RemoveDeadInstructions(computation);
  const std::vector<bool> keep = NeededElements(*loop);
  const bool all = std::find(keep.begin(), keep.end(), false) == keep.end();
  const bool none = std::find(keep.begin(), keep.end(), true) == keep.end();
  if (all || none) return nullptr;

  Computation* body = loop->while_body();
  Instruction* old_next = body->root();
  Instruction* next = KeptElements(old_next, keep);
  body->set_root(next);
  body->RemoveWithDeadOperands(old_next);
  for (Computation* computation : loop->called_computations()) ShrinkParameter(computation, keep, next->shape());

  Computation* parent = loop->parent();
  Instruction* init = KeptElements(loop->operand(0), keep);
  auto smaller = std::make_unique<Instruction>(Opcode::kWhile, next->shape(), std::vector<Instruction*>{init},
                                               hlo::attr::None{}, loop->called_computations());
  smaller->metadata = loop->metadata;
  smaller->frontend_attributes = loop->frontend_attributes;
  Instruction* replacement = parent->Add(std::move(smaller), loop);
  int64_t number = 0;
  for (size_t i = 0; i < keep.size(); ++i) {
    for (Instruction* element : ElementsOf(loop, static_cast<int64_t>(i))) {
      hlo::Builder build(parent, element);
      parent->Replace(element, build.GetTupleElement(replacement, number));
    }
    number += keep[i] ? 1 : 0;
  }
  // Not by being dead: a body with collectives has effects, and the smaller loop has them now.
  Instruction* old_init = loop->operand(0);
  parent->Remove(loop);
  parent->RemoveWithDeadOperands(old_init);
  return replacement;
}

}  // namespace hlorun::passes
