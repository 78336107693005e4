#include "backends/opencl/codegen/host_evaluation.h"

#include <algorithm>

#include "hlo/module.h"
#include "hlo/text/printer.h"
#include "passes/expand/uninitialized.h"

namespace hlorun::opencl {
namespace {

using hlo::Computation;
using hlo::Instruction;

bool HasDouble(const hlo::Shape& shape) {
  bool found = false;
  hlo::ForEachLeaf(shape, [&](const hlo::ShapeIndex&, const hlo::Shape& leaf) {
    if (leaf.IsArray()) found |= hlo::RealOf(leaf.element_type()) == hlo::ElementType::kF64;
  });
  return found;
}

bool HasDouble(const Instruction& instruction) {
  if (HasDouble(instruction.shape())) return true;
  const auto& operands = instruction.operands();
  if (std::any_of(operands.begin(), operands.end(), [](const Instruction* o) { return HasDouble(o->shape()); }))
    return true;
  const auto& called = instruction.called_computations();
  return std::any_of(called.begin(), called.end(), [](const Computation* computation) {
    const auto& body = computation->instructions();
    return std::any_of(body.begin(), body.end(), [](const auto& i) { return HasDouble(*i); });
  });
}

// Copies `computation`, and what it calls, unless they are in `copies` already.
void Adopt(const Computation& computation, hlo::Module& module, hlo::ComputationMap& copies) {
  if (copies.contains(&computation)) return;
  for (const auto& instruction : computation.instructions()) {
    for (const Computation* called : instruction->called_computations()) Adopt(*called, module, copies);
  }
  Computation* copy = module.AddComputation(computation.name());
  hlo::InstructionMap images;
  copy->set_root(computation.CloneInto(copy, images, copies));
  copies[&computation] = copy;
}

}  // namespace

bool NeedsHostEvaluation(const Instruction& instruction, const DeviceSpec& device) {
  return !device.has_f64 && HasDouble(instruction) && !passes::IsUninitialized(instruction);
}

std::string EvaluatedModule(const Instruction& instruction) {
  hlo::Module module(instruction.name());
  hlo::ComputationMap copies;
  for (const Computation* called : instruction.called_computations()) Adopt(*called, module, copies);
  Computation* main = module.AddComputation("main");
  std::vector<Instruction*> parameters;
  for (int64_t i = 0; i < instruction.operand_count(); ++i) {
    parameters.push_back(main->AddParameter(i, instruction.operand(i)->shape(), fmt::format("p{}", i)));
  }
  auto copy = instruction.CloneWithOperands(instruction.shape(), std::move(parameters));
  for (size_t c = 0; c < instruction.called_computations().size(); ++c) {
    copy->set_called(static_cast<int64_t>(c), copies.at(instruction.called(static_cast<int64_t>(c))));
  }
  copy->sharding.reset();
  main->set_root(main->Add(std::move(copy)));
  module.set_entry(main);
  return hlo::PrintModule(module, {.metadata = false, .backend_config = false});
}

}  // namespace hlorun::opencl
