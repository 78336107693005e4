#include "passes/memory/dataflow.h"

#include "hlo/error.h"

namespace hlorun::passes {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

int64_t FirstLeafOf(const hlo::Shape& tuple, int64_t index) {
  int64_t first = 0;
  for (int64_t i = 0; i < index; ++i) first += hlo::LeafCount(tuple.tuple_shape(i));
  return first;
}

bool MovesNoData(const Instruction& instruction) {
  return instruction.Has(hlo::kTransparent) || instruction.Has(hlo::kControl) || instruction.Is(Opcode::kParameter) ||
         instruction.IsConstant();
}

Dataflow::Dataflow(const hlo::Module& module) { Visit(*module.entry(), {}); }

const std::vector<ValueId>& Dataflow::ValuesOf(const Instruction* instruction) const {
  const auto it = leaves_.find(instruction);
  HLORUN_CHECK(it != leaves_.end());
  return it->second;
}

ValueId Dataflow::Define(const Instruction* instruction, int64_t leaf, Value::Kind kind) {
  // Loop bodies are visited until their invariants are known: a value keeps its identity.
  const auto [it, added] = defined_.try_emplace({instruction, leaf}, static_cast<ValueId>(values_.size()));
  if (added) {
    const hlo::Shape shape = hlo::FlattenShape(instruction->shape())[static_cast<size_t>(leaf)];
    values_.push_back({kind, instruction, leaf, shape.ByteSize()});
  }
  return it->second;
}

Dataflow::Leaves Dataflow::DefineAll(const Instruction* instruction, Value::Kind kind) {
  Leaves leaves;
  hlo::ForEachLeaf(instruction->shape(), [&](const hlo::ShapeIndex&, const hlo::Shape& shape) {
    const auto leaf = static_cast<int64_t>(leaves.size());
    leaves.push_back(shape.IsArray() ? Define(instruction, leaf, kind) : kNoValue);
  });
  return leaves;
}

void Dataflow::Visit(const Computation& computation, std::span<const Leaves> arguments) {
  for (Instruction* instruction : computation.PostOrder()) {
    if (!instruction->Is(Opcode::kParameter)) {
      leaves_[instruction] = Transfer(instruction);
    } else if (arguments.empty()) {
      leaves_[instruction] = DefineAll(instruction, Value::Kind::kArgument);
    } else {
      leaves_[instruction] = arguments[static_cast<size_t>(instruction->parameter_number())];
    }
  }
}

Dataflow::Leaves Dataflow::Transfer(const Instruction* instruction) {
  switch (instruction->opcode()) {
    case Opcode::kConstant: return DefineAll(instruction, Value::Kind::kConstant);
    case Opcode::kTuple: {
      Leaves leaves;
      for (const Instruction* operand : instruction->operands()) {
        const Leaves& part = ValuesOf(operand);
        leaves.insert(leaves.end(), part.begin(), part.end());
      }
      return leaves;
    }
    case Opcode::kGetTupleElement: {
      const Instruction* tuple = instruction->operand(0);
      const Leaves& all = ValuesOf(tuple);
      const auto first = all.begin() + FirstLeafOf(tuple->shape(), instruction->tuple_index());
      return Leaves(first, first + hlo::LeafCount(instruction->shape()));
    }
    case Opcode::kAsyncStart: {
      // Operands, where they are, and the result: both are in use until the done.
      Leaves leaves;
      for (const Instruction* operand : instruction->operands()) {
        const Leaves& part = ValuesOf(operand);
        leaves.insert(leaves.end(), part.begin(), part.end());
      }
      const int64_t results = hlo::LeafCount(instruction->shape().tuple_shape(1));
      for (int64_t leaf = 0; leaf < results; ++leaf) {
        leaves.push_back(Define(instruction, static_cast<int64_t>(leaves.size()), Value::Kind::kDefined));
      }
      leaves.resize(static_cast<size_t>(hlo::LeafCount(instruction->shape())), kNoValue);  // contexts
      return leaves;
    }
    case Opcode::kAsyncDone: {
      const Leaves& all = ValuesOf(instruction->operand(0));
      const auto first = all.begin() + FirstLeafOf(instruction->operand(0)->shape(), 1);
      return Leaves(first, first + hlo::LeafCount(instruction->shape()));
    }
    case Opcode::kWhile: return TransferWhile(instruction);
    case Opcode::kConditional: return TransferConditional(instruction);
    case Opcode::kCall: {
      std::vector<Leaves> arguments;
      for (const Instruction* operand : instruction->operands()) arguments.push_back(ValuesOf(operand));
      Visit(*instruction->called(), arguments);
      return ValuesOf(instruction->called()->root());
    }
    default:
      if (!instruction->Has(hlo::kTransparent)) return DefineAll(instruction, Value::Kind::kDefined);
      if (instruction->shape().IsToken()) return {kNoValue};
      return ValuesOf(instruction->operand(0));
  }
}

Dataflow::Leaves Dataflow::TransferWhile(const Instruction* loop) {
  const Leaves initial = ValuesOf(loop->operand(0));
  const Instruction* carried = loop->while_body()->parameter(0);
  // Optimistic: a leaf is invariant until an iteration is seen to change it.
  std::vector<bool>& invariant = invariant_.try_emplace(loop, initial.size(), true).first->second;
  for (bool settled = false; !settled;) {
    std::vector<Leaves> arguments(1, initial);
    for (size_t i = 0; i < initial.size(); ++i) {
      if (!invariant[i]) arguments[0][i] = Define(carried, static_cast<int64_t>(i), Value::Kind::kCarried);
    }
    Visit(*loop->while_condition(), arguments);
    Visit(*loop->while_body(), arguments);
    const Leaves& next = ValuesOf(loop->while_body()->root());
    settled = true;
    for (size_t i = 0; i < initial.size(); ++i) {
      if (!invariant[i] || next[i] == initial[i]) continue;
      invariant[i] = false;
      settled = false;
    }
  }
  Leaves result = initial;
  for (size_t i = 0; i < initial.size(); ++i) {
    if (!invariant[i]) result[i] = Define(loop, static_cast<int64_t>(i), Value::Kind::kLoopResult);
  }
  return result;
}

Dataflow::Leaves Dataflow::TransferConditional(const Instruction* conditional) {
  const auto& branches = conditional->called_computations();
  for (size_t i = 0; i < branches.size(); ++i) {
    const std::vector<Leaves> arguments = {ValuesOf(conditional->operand(static_cast<int64_t>(i) + 1))};
    Visit(*branches[i], arguments);
  }
  Leaves result = ValuesOf(branches[0]->root());
  for (size_t leaf = 0; leaf < result.size(); ++leaf) {
    bool same = true;
    for (const Computation* branch : branches) same &= ValuesOf(branch->root())[leaf] == result[leaf];
    if (!same) result[leaf] = Define(conditional, static_cast<int64_t>(leaf), Value::Kind::kJoin);
  }
  return result;
}

}  // namespace hlorun::passes
