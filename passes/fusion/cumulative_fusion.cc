#include "passes/fusion/cumulative_fusion.h"

#include <algorithm>

#include "passes/fusion/cluster.h"
#include "passes/fusion/cumulative_window.h"

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Opcode;

namespace {

bool IsResultOf(const Instruction& x, const Instruction& op) {
  return &x == &op || (x.Is(Opcode::kGetTupleElement) && x.operand(0) == &op);
}

// What costs no memory, or less than its result.
bool IsCheap(const Instruction& x) {
  if (x.Is(Opcode::kConvert)) return x.users().size() == 1 && x.operand(0)->shape().ByteSize() < x.shape().ByteSize();
  return x.Is(Opcode::kBroadcast) && IsScalarConstant(*x.operand(0));
}

bool Fuse(Instruction* op) {
  Cluster cluster;
  for (Instruction* user : op->users()) {
    if (!user->Is(Opcode::kGetTupleElement)) return false;
    cluster.roots.push_back(user);
  }
  cluster.members = cluster.roots;
  cluster.members.push_back(op);
  const int64_t arrays = op->operand_count() / 2;
  for (int64_t i = 0; i < arrays; ++i) {
    Instruction* array = op->operand(i);
    const bool is_new = std::find(cluster.members.begin(), cluster.members.end(), array) == cluster.members.end();
    if (IsCheap(*array) && is_new) cluster.members.push_back(array);
  }
  const auto results = static_cast<int64_t>(cluster.roots.size());
  if (results == 0 || (results == arrays && cluster.members.size() == cluster.roots.size() + 1)) return false;
  Outline(cluster);
  return true;
}

}  // namespace

bool FuseCumulativeOps(hlo::Computation& computation) {
  bool changed = false;
  for (Instruction* op : computation.PostOrder()) {
    if (!op->shape().IsTuple() || !CumulativeWindowOf(*op) || op->IsRoot()) continue;
    if (!op->control_predecessors().empty() || !op->control_successors().empty()) continue;
    changed |= Fuse(op);
  }
  return changed;
}

bool GivesResultsOf(const Instruction& root, const Instruction& op) {
  if (!root.Is(Opcode::kTuple)) return IsResultOf(root, op);
  return std::all_of(root.operands().begin(), root.operands().end(),
                     [&](const Instruction* element) { return IsResultOf(*element, op) && element != &op; });
}

}  // namespace hlorun::passes
