#include "passes/expand/wide_reductions.h"

#include <algorithm>
#include <map>
#include <optional>

#include "hlo/builder.h"
#include "hlo/module.h"

namespace hlorun::passes {

using hlo::Computation;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

namespace {

bool IsNarrow(const Shape& shape) {
  return shape.IsArray() && hlo::IsFloating(shape.element_type()) && hlo::BitsOf(shape.element_type()) < 32;
}

Shape Widened(const Shape& shape) { return IsNarrow(shape) ? Shape(ElementType::kF32, shape.dimensions()) : shape; }

bool OnlyChooses(Opcode opcode) { return opcode == Opcode::kMaximum || opcode == Opcode::kMinimum; }

bool HoldsInF32(const Instruction& op) {
  if (op.Is(Opcode::kTuple) || op.Is(Opcode::kParameter) || op.IsConstant() || op.Is(Opcode::kClamp)) return true;
  return op.Has(hlo::kElementwise) && !op.Is(Opcode::kConvert) && op.shape().IsScalar();
}

bool ShouldWiden(const Instruction& reduce) {
  if (!reduce.Is(Opcode::kReduce) && !reduce.Is(Opcode::kReduceWindow)) return false;
  const auto& operands = reduce.operands();
  if (std::none_of(operands.begin(), operands.end(), [](const Instruction* o) { return IsNarrow(o->shape()); }))
    return false;
  const Computation& reducer = *reduce.called();
  if (const std::optional<Opcode> opcode = hlo::ReducerOpcode(reducer); opcode && OnlyChooses(*opcode)) return false;
  bool rounds = false;
  for (const auto& op : reducer.instructions()) {
    if (!HoldsInF32(*op)) return false;
    rounds |= IsNarrow(op->shape()) && !op->Is(Opcode::kParameter) && !op->Is(Opcode::kSelect) && !op->IsConstant();
  }
  return rounds;
}

// The reducer on f32 in place of narrower floats.
Computation* WidenedReducer(const Computation& reducer) {
  Computation* wide = reducer.module()->AddComputation(reducer.name());
  hlo::InstructionMap image;
  for (int64_t i = 0; i < reducer.parameter_count(); ++i) {
    const Instruction* parameter = reducer.parameter(i);
    image[parameter] = wide->AddParameter(i, Widened(parameter->shape()), parameter->name());
  }
  for (Instruction* op : reducer.PostOrder()) {
    if (op->Is(Opcode::kParameter)) continue;
    std::vector<Instruction*> operands;
    for (const Instruction* operand : op->operands()) operands.push_back(image.at(operand));
    if (op->IsConstant() && IsNarrow(op->shape())) {
      hlo::Builder build(wide);
      image[op] = build.ScalarConstant(ElementType::kF32, op->literal().GetDouble(0));
      continue;
    }
    Shape shape = Widened(op->shape());
    if (op->Is(Opcode::kTuple)) {
      std::vector<Shape> leaves;
      for (const Instruction* operand : operands) leaves.push_back(operand->shape());
      shape = Shape::Tuple(std::move(leaves));
    }
    image[op] = wide->Add(op->CloneWithOperands(shape, std::move(operands)));
  }
  wide->set_root(image.at(reducer.root()));
  return wide;
}

void Widen(Instruction* reduce, Computation* reducer) {
  hlo::Builder build(reduce->parent(), reduce);
  build.before = reduce;
  std::vector<Instruction*> operands;
  for (Instruction* operand : reduce->operands()) {
    if (IsNarrow(operand->shape()) && operand->IsConstant() && operand->shape().IsScalar())
      operands.push_back(build.ScalarConstant(ElementType::kF32, operand->literal().GetDouble(0)));
    else
      operands.push_back(IsNarrow(operand->shape()) ? build.Convert(operand, ElementType::kF32) : operand);
  }
  Instruction* wide = build.Make(reduce->opcode(), std::move(operands), reduce->attributes(), {reducer});
  const auto narrowed = [&](Instruction* value, const Shape& shape) {
    return IsNarrow(shape) ? build.Convert(value, shape.element_type()) : value;
  };
  if (!reduce->shape().IsTuple()) {
    reduce->parent()->Replace(reduce, narrowed(wide, reduce->shape()));
    return;
  }
  std::vector<Instruction*> leaves;
  for (size_t i = 0; i < reduce->shape().tuple_shapes().size(); ++i) {
    leaves.push_back(narrowed(build.GetTupleElement(wide, static_cast<int64_t>(i)), reduce->shape().tuple_shape(i)));
  }
  const std::vector<Instruction*> users = reduce->users();
  for (Instruction* user : users) {
    if (user->Is(Opcode::kGetTupleElement)) user->ReplaceAllUsesWith(leaves[static_cast<size_t>(user->tuple_index())]);
  }
  reduce->parent()->Replace(reduce, build.Tuple(std::move(leaves)));
}

}  // namespace

bool WidenReductions::Run(hlo::Module& module, PassContext&) {
  bool changed = false;
  std::map<const Computation*, Computation*> widened;
  for (Computation* computation : module.PostOrder()) {
    for (Instruction* instruction : computation->PostOrder()) {
      if (!ShouldWiden(*instruction)) continue;
      Computation*& reducer = widened[instruction->called()];
      if (reducer == nullptr) reducer = WidenedReducer(*instruction->called());
      Widen(instruction, reducer);
      changed = true;
    }
  }
  if (changed) module.RemoveUnreachable();
  return changed;
}

}  // namespace hlorun::passes
