#include "passes/fusion/concatenated_results.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "passes/fusion/cluster_graph.h"
#include "passes/fusion/recompute.h"
#include "passes/fusion/updated_part.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Of what is reduced. Smaller ones may be run with their neighbours by one work-item (regions.h), which takes results
// one by one.
constexpr int64_t kFewestElements = 1 << 14;

class ConcatenationMerger {
 public:
  explicit ConcatenationMerger(std::vector<Cluster>& clusters) : clusters_(clusters), graph_(clusters) {}

  void Run() {
    for (size_t whole = 0; whole < clusters_.size(); ++whole) {
      if (clusters_[whole].roots.size() != 1 || !clusters_[whole].roots[0]->Is(Opcode::kConcatenate)) continue;
      const std::vector<Instruction*> names = NamesReadBy(whole);
      const std::optional<size_t> reduction = ReductionOf(whole, names);
      if (!reduction || !MayJoin(*reduction, whole, names)) continue;
      for (Instruction* name : names) graph_.Add(name, whole);
      graph_.Join(*reduction, whole);
    }
    graph_.RemoveEmpty();
  }

 private:
  // Reshapes of what is in memory, which no kernel computes, and which nothing else reads.
  std::vector<Instruction*> NamesReadBy(size_t whole) const {
    std::vector<Instruction*> names;
    for (const Instruction* member : clusters_[whole].members) {
      for (Instruction* operand : member->operands()) {
        const bool is_name = clusters_[whole].reads.contains(operand) && IsReinterpretation(*operand) &&
                             graph_.OwnersOf(operand).empty() && !graph_.IsReadOutside(operand, whole);
        if (is_name && std::find(names.begin(), names.end(), operand) == names.end()) names.push_back(operand);
      }
    }
    return names;
  }

  // The cluster of a reduction whose result the concatenation reads.
  std::optional<size_t> ReductionOf(size_t whole, const std::vector<Instruction*>& names) const {
    const Cluster& cluster = clusters_[whole];
    std::vector<Instruction*> readers = cluster.members;
    readers.insert(readers.end(), names.begin(), names.end());
    for (const Instruction* reader : readers) {
      for (const Instruction* operand : reader->operands()) {
        if (cluster.is_member.contains(operand)) continue;
        for (const size_t owner : graph_.OwnersOf(operand)) {
          const Instruction* hero = clusters_[owner].hero;
          if (hero != nullptr && hero->Is(Opcode::kReduce) && hero->shape().IsArray()) return owner;
        }
      }
    }
    return std::nullopt;
  }

  bool MayJoin(size_t reduction, size_t whole, const std::vector<Instruction*>& names) {
    const Cluster& from = clusters_[reduction];
    const Cluster& into = clusters_[whole];
    if (from.hero->operand(0)->shape().ElementCount() < kFewestElements) return false;
    const auto is_read_elsewhere = [&](const Instruction* root) {
      if (root->IsRoot() || !root->control_successors().empty()) return true;
      return std::any_of(root->users().begin(), root->users().end(), [&](const Instruction* user) {
        if (std::find(names.begin(), names.end(), user) != names.end()) return false;
        const std::vector<size_t>& owners = graph_.OwnersOf(user);
        return owners.empty() || std::any_of(owners.begin(), owners.end(),
                                             [&](size_t owner) { return owner != whole && owner != reduction; });
      });
    };
    if (std::any_of(from.roots.begin(), from.roots.end(), is_read_elsewhere)) return false;
    std::vector<Instruction*> members = ClusterGraph::MembersOf(from, into);
    members.insert(members.end(), names.begin(), names.end());
    // A name is computed from what the reduction makes, or is a name of an array that is read instead.
    const auto is_made = [&](const Instruction* name) { return from.is_member.contains(name->operand(0)); };
    const auto fewer = static_cast<size_t>(std::count_if(names.begin(), names.end(), is_made));
    return OperationsIn(members) <= kMaxClusterOperations &&
           ClusterGraph::ReadsOf(from, into) - fewer <= kMaxClusterReads && IsMadeByPlace(from, into, names);
  }

  // Whether each part is made of the reduction's results element by element.
  static bool IsMadeByPlace(const Cluster& reduction, const Cluster& whole, const std::vector<Instruction*>& names) {
    const int64_t count = reduction.hero->shape().ElementCount();
    const auto has_count = [&](const Instruction* x) { return x->shape().ElementCount() == count; };
    if (!std::all_of(reduction.roots.begin(), reduction.roots.end(), has_count)) return false;
    std::unordered_set<const Instruction*> made(reduction.roots.begin(), reduction.roots.end());
    std::vector<Instruction*> finishing = names;  // operands before users
    finishing.insert(finishing.end(), whole.members.rbegin(), whole.members.rend() - 1);
    for (const Instruction* member : finishing) {
      for (const Instruction* operand : member->operands()) {
        if (made.count(operand) == 0) continue;
        if (!IsReinterpretation(*member) && !ReadsSamePlace(*member, *operand)) return false;
        made.insert(member);
      }
    }
    const auto& parts = whole.roots[0]->operands();
    return std::all_of(parts.begin(), parts.end(),
                       [&](const Instruction* part) { return has_count(part) && made.count(part) != 0; });
  }

  std::vector<Cluster>& clusters_;
  ClusterGraph graph_;
};

}  // namespace

void MergeConcatenatedResults(std::vector<Cluster>& clusters) { ConcatenationMerger(clusters).Run(); }

}  // namespace hlorun::passes
