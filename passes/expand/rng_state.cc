#include "passes/expand/rng_state.h"

#include "hlo/builder.h"
#include "hlo/error.h"
#include "hlo/module.h"

namespace hlorun::passes {

using hlo::Computation;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

namespace {

constexpr uint64_t kInitialLow = 0x7012395;  // where XLA:CPU starts

const Shape& StateShape() {
  static const Shape kShape(ElementType::kU64, {2});
  return kShape;
}

bool UsesState(const Instruction& instruction) {
  if (instruction.Is(Opcode::kRngGetAndUpdateState)) return true;
  if (!instruction.Has(hlo::kControl)) return false;
  for (const Computation* called : instruction.called_computations()) {
    for (const auto& inner : called->instructions()) {
      if (UsesState(*inner)) return true;
    }
  }
  return false;
}

// The state `delta` draws later: an addition in 128 bits.
Instruction* Advanced(hlo::Builder& build, Instruction* state, int64_t delta) {
  Instruction* high = build.Slice(state, {0}, {1}, {1});
  Instruction* low = build.Slice(state, {1}, {2}, {1});
  Instruction* next = build.Binary(Opcode::kAdd, low, build.Splat(low->shape(), delta));
  Instruction* carry = build.Convert(build.Compare(next, low, hlo::ComparisonDirection::kLt), ElementType::kU64);
  return build.Concatenate({build.Binary(Opcode::kAdd, high, carry), next}, 0);
}

Instruction* Thread(Computation* computation, Instruction* state);

// A copy of `original` on (argument, state) that returns (result, state); or, for conditions, its result alone.
Computation* WithState(const Computation& original, bool returns_state) {
  Computation* copy = original.module()->AddComputation(original.name());
  const Instruction* parameter = original.parameter(0);
  Instruction* both = copy->AddParameter(0, Shape::Tuple({parameter->shape(), StateShape()}), parameter->name());
  hlo::Builder build(copy);
  hlo::InstructionMap map;
  map[parameter] = build.GetTupleElement(both, 0);
  copy->set_root(original.CloneInto(copy, map));
  if (!returns_state) return copy;
  Instruction* state = Thread(copy, build.GetTupleElement(both, 1));
  hlo::Builder end(copy);
  copy->set_root(end.Tuple({copy->root(), state}));
  return copy;
}

Instruction* ThreadWhile(Instruction* loop, Instruction* state) {
  for (const auto& inner : loop->while_condition()->instructions()) {
    if (UsesState(*inner))
      Fail(ErrorCode::kUnimplemented, "{}: random numbers in the condition of a loop are not supported", loop->name());
  }
  hlo::Builder build(loop->parent(), loop);
  build.before = loop;
  Computation* condition = WithState(*loop->while_condition(), false);
  Computation* body = WithState(*loop->while_body(), true);
  Instruction* made =
      build.Make(Opcode::kWhile, {build.Tuple({loop->operand(0), state})}, loop->attributes(), {condition, body});
  Instruction* next = build.GetTupleElement(made, 1);
  loop->parent()->Replace(loop, build.GetTupleElement(made, 0));
  return next;
}

Instruction* ThreadConditional(Instruction* conditional, Instruction* state) {
  hlo::Builder build(conditional->parent(), conditional);
  build.before = conditional;
  std::vector<Instruction*> operands = {conditional->operand(0)};
  std::vector<Computation*> branches;
  for (size_t i = 0; i < conditional->called_computations().size(); ++i) {
    const auto number = static_cast<int64_t>(i);
    operands.push_back(build.Tuple({conditional->operand(number + 1), state}));
    branches.push_back(WithState(*conditional->called(number), true));
  }
  Instruction* made =
      build.Make(Opcode::kConditional, std::move(operands), conditional->attributes(), std::move(branches));
  Instruction* next = build.GetTupleElement(made, 1);
  conditional->parent()->Replace(conditional, build.GetTupleElement(made, 0));
  return next;
}

// From the state before the computation to the state after it.
Instruction* Thread(Computation* computation, Instruction* state) {
  for (Instruction* instruction : computation->PostOrder()) {
    if (!UsesState(*instruction)) continue;
    if (instruction->Is(Opcode::kRngGetAndUpdateState)) {
      hlo::Builder build(computation, instruction);
      build.before = instruction;
      Instruction* next = Advanced(build, state, instruction->As<hlo::attr::RngState>().delta);
      computation->Replace(instruction, state);
      state = next;
    } else if (instruction->Is(Opcode::kWhile)) {
      state = ThreadWhile(instruction, state);
    } else if (instruction->Is(Opcode::kConditional)) {
      state = ThreadConditional(instruction, state);
    } else {
      Fail(ErrorCode::kInternal, "{}: a call is left where random numbers are threaded", instruction->name());
    }
  }
  computation->SetOrder(computation->PostOrder());
  return state;
}

}  // namespace

bool ThreadRngState::Run(hlo::Module& module, PassContext&) {
  Computation* entry = module.entry();
  bool uses = false;
  for (const auto& instruction : entry->instructions()) uses |= UsesState(*instruction);
  if (!uses) return false;
  hlo::Literal initial(StateShape());
  initial.SetInt(1, static_cast<int64_t>(kInitialLow));
  Thread(entry, hlo::Builder(entry).Constant(std::move(initial)));
  entry->SetOrder(entry->PostOrder());
  module.RemoveUnreachable();
  return true;
}

}  // namespace hlorun::passes
