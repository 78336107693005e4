#include "passes/fusion/cumulative_fusion.h"

#include <algorithm>

#include "hlo/builder.h"
#include "hlo/cumulative_window.h"
#include "passes/fusion/cluster.h"

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

// Regions are made of kernels below this; above, a launch is short beside one.
constexpr int64_t kLarge = 1 << 14;

// In the order of the results; none where somebody wants all together or one twice.
std::vector<Instruction*> ResultsOf(Instruction* op) {
  std::vector<Instruction*> results(op->shape().tuple_shapes().size());
  for (Instruction* user : op->users()) {
    if (!user->Is(Opcode::kGetTupleElement)) return {};
    Instruction*& result = results[static_cast<size_t>(user->tuple_index())];
    if (result != nullptr) return {};
    result = user;
  }
  if (op->operand(0)->shape().ElementCount() >= kLarge) {
    std::erase(results, nullptr);
    return results;
  }
  hlo::Builder build(op->parent(), op);
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i] == nullptr) results[i] = build.GetTupleElement(op, static_cast<int64_t>(i));
  }
  return results;
}

bool Fuse(Instruction* op) {
  const bool leaves_results = op->operand(0)->shape().ElementCount() >= kLarge;
  const int64_t arrays = op->operand_count() / 2;
  const auto is_cheap = [](const Instruction* operand) { return IsCheap(*operand); };
  if (!leaves_results && std::none_of(op->operands().begin(), op->operands().begin() + arrays, is_cheap)) return false;
  Cluster cluster;
  cluster.roots = ResultsOf(op);
  cluster.members = cluster.roots;
  cluster.members.push_back(op);
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
  // Found before any is fused: that removes the elements of its result, which come behind it.
  std::vector<Instruction*> ops;
  for (Instruction* op : computation.PostOrder()) {
    if (!op->shape().IsTuple() || !CumulativeWindowOf(*op) || op->IsRoot()) continue;
    if (!op->control_predecessors().empty() || !op->control_successors().empty()) continue;
    ops.push_back(op);
  }
  bool changed = false;
  for (Instruction* op : ops) changed |= Fuse(op);
  return changed;
}

bool GivesResultsOf(const Instruction& root, const Instruction& op) {
  if (!root.Is(Opcode::kTuple)) return IsResultOf(root, op);
  return std::all_of(root.operands().begin(), root.operands().end(),
                     [&](const Instruction* element) { return IsResultOf(*element, op) && element != &op; });
}

bool GivesAllResultsOf(const Instruction& root, const Instruction& op) {
  if (&root == &op) return true;
  if (!root.Is(Opcode::kTuple) || root.operand_count() != op.operand_count() / 2) return false;
  for (int64_t i = 0; i < root.operand_count(); ++i) {
    const Instruction& element = *root.operand(i);
    if (&element == &op || !IsResultOf(element, op) || element.tuple_index() != i) return false;
  }
  return true;
}

}  // namespace hlorun::passes
