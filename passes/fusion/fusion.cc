#include "passes/fusion/fusion.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "hlo/builder.h"
#include "passes/dynamic/signature.h"
#include "passes/fusion/cluster.h"
#include "passes/fusion/concatenated_results.h"
#include "passes/fusion/cumulative_fusion.h"
#include "passes/fusion/loop_clusters.h"
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
  // Kernels whose sizes vary end at those of the whole result.
  if (SignatureOf(*computation.module()).empty()) MergeConcatenatedResults(clusters);
  MergeLoops(computation, clusters);
  bool changed = false;
  // The list of clusters runs from users to operands; operands first, so that a fusion reads fusions.
  for (auto cluster = clusters.rbegin(); cluster != clusters.rend(); ++cluster) {
    if (!cluster->NeedsOutline()) continue;
    Outline(*cluster);
    changed = true;
  }
  return changed;
}

// A broadcast of short runs to many rows is two: the runs, which are few, and the rows.
//   before: b = f32[2,4096,32,10] broadcast(f32[2,32] x), dimensions={0,2}
//   after:  w = f32[2,32,10] broadcast(x), dimensions={0,1}   b = f32[2,4096,32,10] broadcast(w), dimensions={0,2,3}
bool SplitBroadcasts(hlo::Computation& computation) {
  constexpr int64_t kManyRows = 16;
  bool changed = false;
  for (Instruction* instruction : computation.PostOrder()) {
    if (!SpreadsShortRuns(*instruction)) continue;
    Instruction* x = instruction->operand(0);
    const int64_t minor = instruction->shape().rank() - 1, run = instruction->shape().dimension(minor);
    if (x->shape().ElementCount() * run * kManyRows > instruction->shape().ElementCount()) continue;
    hlo::Dims runs = x->shape().dimensions();
    std::vector<int64_t> own(runs.size()), places = instruction->dimensions();
    std::iota(own.begin(), own.end(), 0);
    runs.push_back(run);
    places.push_back(minor);
    hlo::Builder build(&computation, instruction);
    build.before = instruction;
    computation.Replace(instruction,
                        build.Broadcast(build.Broadcast(x, runs, own), instruction->shape().dimensions(), places));
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
    changed |= SplitBroadcasts(*computation);
    changed |= FuseCumulativeOps(*computation);
    changed |= Fuse(*computation, context);
    changed |= ReshapesToBitcasts(*computation);
    changed |= RemoveDead(*computation);
  }
  return changed;
}

}  // namespace hlorun::passes
