#include "passes/expand/map.h"

#include <algorithm>

#include "hlo/builder.h"

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Opcode;

namespace {

bool WorksOnArrays(const Instruction& instruction) {
  return instruction.Is(Opcode::kParameter) || instruction.IsConstant() || instruction.Has(hlo::kElementwise) ||
         instruction.Is(Opcode::kClamp);
}

// The computation's parameters may be of another float type than the operands.
bool ConvertOperands(Instruction* map) {
  bool changed = false;
  for (int64_t i = 0; i < map->operand_count(); ++i) {
    Instruction* operand = map->operand(i);
    const hlo::ElementType type = map->called()->parameter(i)->shape().element_type();
    if (operand->shape().element_type() == type) continue;
    map->ReplaceOperand(i, hlo::Builder(map->parent(), map).Convert(operand, type));
    changed = true;
  }
  return changed;
}

bool Expand(Instruction* map) {
  const std::vector<Instruction*> order = map->called()->PostOrder();
  if (!std::all_of(order.begin(), order.end(), [](const Instruction* i) { return WorksOnArrays(*i); })) return false;
  hlo::Builder build(map->parent(), map);
  build.before = map;
  const hlo::Dims& dimensions = map->shape().dimensions();
  hlo::InstructionMap image;
  for (Instruction* scalar : order) {
    if (scalar->Is(Opcode::kParameter)) {
      image[scalar] = map->operand(scalar->parameter_number());
    } else if (scalar->IsConstant()) {
      image[scalar] = build.Broadcast(build.Constant(scalar->literal()), dimensions, {});
    } else {
      std::vector<Instruction*> operands;
      for (const Instruction* operand : scalar->operands()) operands.push_back(image.at(operand));
      const hlo::Shape shape(scalar->shape().element_type(), dimensions);
      image[scalar] = map->parent()->Add(scalar->CloneWithOperands(shape, std::move(operands)), map);
    }
  }
  map->parent()->Replace(map, image.at(map->called()->root()));
  return true;
}

}  // namespace

bool ExpandMap::Run(hlo::Module& module, PassContext&) {
  bool changed = false;
  for (hlo::Computation* computation : module.PostOrder()) {
    for (Instruction* instruction : computation->PostOrder()) {
      if (!instruction->Is(Opcode::kMap)) continue;
      changed |= ConvertOperands(instruction);
      changed |= Expand(instruction);
    }
  }
  return changed;
}

}  // namespace hlorun::passes
