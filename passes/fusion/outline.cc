#include <algorithm>

#include "hlo/module.h"
#include "passes/fusion/cluster.h"
#include "passes/fusion/hero.h"

namespace hlorun::passes {
namespace {

using hlo::FusionKind;
using hlo::Instruction;
using hlo::Opcode;

FusionKind KindFor(KernelKind kind) {
  switch (kind) {
    case KernelKind::kLoop:
    case KernelKind::kInPlace: return FusionKind::kLoop;
    case KernelKind::kReduceWindow:
    case KernelKind::kSelectAndScatter:
    case KernelKind::kReduction:
    case KernelKind::kRow: return FusionKind::kInput;
    case KernelKind::kDot:
    case KernelKind::kConvolution: return FusionKind::kOutput;
    default: return FusionKind::kCustom;
  }
}

// Copies the members into `body` and returns the operands of the fusion, in the order of their parameters.
std::vector<Instruction*> FillBody(const Cluster& cluster, hlo::Computation* body, hlo::InstructionMap& map) {
  std::vector<Instruction*> operands;
  for (auto it = cluster.members.rbegin(); it != cluster.members.rend(); ++it) {
    std::vector<Instruction*> inner;
    for (Instruction* operand : (*it)->operands()) {
      auto [known, added] = map.try_emplace(operand, nullptr);
      if (added && IsScalarConstant(*operand)) {
        known->second = body->Add(operand->CloneWithOperands(operand->shape(), {}));
      } else if (added) {
        const auto number = static_cast<int64_t>(operands.size());
        known->second = body->AddParameter(number, operand->shape(), fmt::format("p{}", number));
        operands.push_back(operand);
      }
      inner.push_back(known->second);
    }
    map[*it] = body->Add((*it)->CloneWithOperands((*it)->shape(), std::move(inner)));
  }
  return operands;
}

}  // namespace

void Outline(const Cluster& cluster) {
  hlo::Computation* computation = cluster.roots[0]->parent();
  hlo::Module* module = computation->module();
  hlo::Computation* body = module->AddComputation("fused_computation");
  hlo::InstructionMap map;
  std::vector<Instruction*> operands = FillBody(cluster, body, map);
  hlo::Shape shape = cluster.roots[0]->shape();
  if (cluster.roots.size() == 1) {
    body->set_root(map.at(cluster.roots[0]));
  } else {
    std::vector<Instruction*> results;
    std::vector<hlo::Shape> shapes;
    for (const Instruction* root : cluster.roots) {
      results.push_back(map.at(root));
      shapes.push_back(root->shape());
    }
    shape = hlo::Shape::Tuple(shapes);
    body->set_root(body->Add(Opcode::kTuple, shape, std::move(results)));
  }
  auto made = std::make_unique<Instruction>(Opcode::kFusion, shape, std::move(operands), hlo::attr::Fusion{},
                                            std::vector<hlo::Computation*>{body});
  const Hero hero = HeroOf(*made);
  made->MutableAs<hlo::attr::Fusion>().kind = KindFor(hero.kind);
  made->set_name(fmt::format("{}_fusion", hlo::OpcodeName(hero.instruction->opcode())));
  made->metadata = hero.instruction->metadata;
  // In front of the last root; operands of a root that comes earlier are found by every later topological order.
  Instruction* fusion = computation->Add(std::move(made), cluster.roots.back());
  for (size_t i = 0; i < cluster.roots.size(); ++i) {
    Instruction* root = cluster.roots[i];
    Instruction* result = fusion;
    if (cluster.roots.size() > 1) {
      auto element =
          std::make_unique<Instruction>(Opcode::kGetTupleElement, root->shape(), std::vector<Instruction*>{fusion},
                                        hlo::attr::TupleIndex{static_cast<int64_t>(i)});
      result = computation->Add(std::move(element), cluster.roots.back());
    }
    root->ReplaceAllUsesWith(result);
  }
  for (Instruction* root : cluster.roots) computation->RemoveWithDeadOperands(root);
}

}  // namespace hlorun::passes
