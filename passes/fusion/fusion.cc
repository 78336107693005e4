#include "passes/fusion/fusion.h"

#include <algorithm>
#include <unordered_map>

#include "passes/fusion/cluster.h"
#include "passes/fusion/recompute.h"
#include "passes/fusion/row_clusters.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

bool Fuse(hlo::Computation& computation, const PassContext& context) {
  std::vector<Cluster> clusters = FindClusters(computation, context.kernels);
  MergeRows(clusters, context.device);
  MergeSiblingReductions(clusters);
  bool changed = false;
  // The list of clusters runs from users to operands; operands first, so that a fusion reads fusions.
  for (auto cluster = clusters.rbegin(); cluster != clusters.rend(); ++cluster) {
    if (!cluster->NeedsOutline()) continue;
    Outline(*cluster);
    changed = true;
  }
  return changed;
}

bool RemoveDead(hlo::Computation& computation) {
  bool changed = false;
  std::vector<Instruction*> order = computation.PostOrder();
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    if (!(*it)->IsDead() || (*it)->Is(Opcode::kParameter) || (*it)->HasSideEffect()) continue;
    computation.Remove(*it);
    changed = true;
  }
  return changed;
}

bool ReshapesToBitcasts(hlo::Computation& computation) {
  bool changed = false;
  for (Instruction* instruction : computation.PostOrder()) {
    if (!IsReinterpretation(*instruction) || instruction->Is(Opcode::kBitcast)) continue;
    computation.ReplaceWithNew(instruction,
                               std::make_unique<Instruction>(Opcode::kBitcast, instruction->shape(),
                                                             std::vector<Instruction*>{instruction->operand(0)}));
    changed = true;
  }
  return changed;
}

}  // namespace

bool Fusion::Run(hlo::Module& module, PassContext& context) {
  bool changed = false;
  for (hlo::Computation* computation : module.ControlComputations()) {
    changed |= RemoveDead(*computation);
    changed |= Fuse(*computation, context);
    changed |= ReshapesToBitcasts(*computation);
    changed |= RemoveDead(*computation);
  }
  return changed;
}

}  // namespace hlorun::passes
