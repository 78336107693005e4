#include "passes/fusion/loop_clusters.h"

#include <algorithm>
#include <unordered_map>

#include "hlo/elementwise.h"
#include "passes/fusion/cluster_graph.h"
#include "passes/fusion/hero.h"
#include "passes/fusion/pooling.h"
#include "passes/fusion/recompute.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Of one kernel.
constexpr size_t kMostResults = 8;
// Loops that stand further apart in a program would keep what they read, and what they make, for long.
constexpr size_t kMostApart = 64;
// Of an array whose readers are looked through.
constexpr size_t kMostReaders = 64;
// How much is looked at to see whether two loops need each other through others.
constexpr size_t kMostVisited = 500;

bool IsContiguous(const Instruction& instruction) {
  constexpr Opcode kMoving[] = {Opcode::kTranspose, Opcode::kGather, Opcode::kReverse, Opcode::kDynamicSlice,
                                Opcode::kConcatenate};
  return IsLoopOp(instruction) &&
         std::find(std::begin(kMoving), std::end(kMoving), instruction.opcode()) == std::end(kMoving);
}

class LoopMerger {
 public:
  LoopMerger(hlo::Computation& computation, std::vector<Cluster>& clusters) : clusters_(clusters), graph_(clusters) {
    for (const Instruction* instruction : computation.PostOrder()) places_.emplace(instruction, places_.size());
  }

  void Run() {
    for (size_t into = 0; into < clusters_.size(); ++into) {
      while (IsLoop(clusters_[into]) && (JoinProducer(into) || JoinSibling(into))) {
      }
    }
    graph_.RemoveEmpty();
  }

 private:
  static bool IsLoop(const Cluster& cluster) {
    if (cluster.roots.empty() || !cluster.roots[0]->shape().IsArray()) return false;
    return (cluster.hero == nullptr || IsPooling(*cluster.hero)) &&
           std::all_of(cluster.members.begin(), cluster.members.end(),
                       [](const Instruction* member) { return IsContiguous(*member) || IsPooling(*member); });
  }

  // A loop whose result this one reads.
  bool JoinProducer(size_t consumer) {
    for (const Instruction* member : clusters_[consumer].members) {
      for (const Instruction* operand : member->operands()) {
        if (clusters_[consumer].is_member.contains(operand)) continue;
        for (const size_t producer : graph_.OwnersOf(operand)) {
          if (IsRootOf(operand, clusters_[producer]) && TryJoin(producer, consumer)) return true;
        }
      }
    }
    return false;
  }

  // A loop that reads an array of the same dimensions as this one does.
  bool JoinSibling(size_t into) {
    for (const Instruction* member : clusters_[into].members) {
      for (const Instruction* operand : member->operands()) {
        if (!clusters_[into].reads.contains(operand) || !operand->shape().IsArray() ||
            !operand->shape().SameDimensions(clusters_[into].roots[0]->shape()) ||
            operand->users().size() > kMostReaders)
          continue;
        for (const Instruction* user : operand->users()) {
          for (const size_t other : graph_.OwnersOf(user)) {
            const Cluster &from = clusters_[other], &own = clusters_[into];
            if (AreNear(from, own) && ShareWork(from, own) && TryJoin(other, into)) return true;
          }
        }
      }
    }
    return false;
  }

  // One array to read is too little: what loops make side by side is read later than if each ran in front of its
  // reader, and then comes from further away (the padded copies of an image for each phase of a strided convolution).
  static bool ShareWork(const Cluster& a, const Cluster& b) {
    size_t arrays = 0;
    for (const Instruction* read : a.reads) {
      const bool is_large = read->shape().IsArray() && read->shape().SameDimensions(a.roots[0]->shape());
      arrays += is_large && b.reads.contains(read) ? 1 : 0;
    }
    return arrays > 1 || std::any_of(a.members.begin(), a.members.end(), [&](const Instruction* member) {
             return hlo::IsElementwise(*member) && b.is_member.contains(member);
           });
  }

  static bool IsRootOf(const Instruction* instruction, const Cluster& cluster) {
    return std::find(cluster.roots.begin(), cluster.roots.end(), instruction) != cluster.roots.end();
  }

  bool TryJoin(size_t producer, size_t consumer) {
    const Cluster &from = clusters_[producer], &into = clusters_[consumer];
    if (producer == consumer || !IsLoop(from) || !from.roots[0]->shape().SameDimensions(into.roots[0]->shape()))
      return false;
    if (from.roots.size() + into.roots.size() > kMostResults || !AreNear(from, into)) return false;
    if (OperationsIn(ClusterGraph::MembersOf(from, into)) > kMaxClusterOperations ||
        ClusterGraph::ReadsOf(from, into) > kMaxClusterReads)
      return false;
    if (Reads(from, into) || !ReadsInPlace(into, from)) return false;
    if (graph_.HasWayAround(producer, consumer, kMostVisited)) return false;
    graph_.Join(producer, consumer);
    return true;
  }

  bool AreNear(const Cluster& a, const Cluster& b) const {
    size_t first = places_.size(), last = 0;
    for (const Cluster* cluster : {&a, &b}) {
      for (const Instruction* root : cluster->roots) {
        if (!root->control_successors().empty() || !root->control_predecessors().empty()) return false;
        first = std::min(first, places_.at(root));
        last = std::max(last, places_.at(root));
      }
    }
    return last - first <= kMostApart;
  }

  // Also what Cluster::reads does not count.
  static bool Reads(const Cluster& reader, const Cluster& other) {
    return std::any_of(reader.members.begin(), reader.members.end(), [&](const Instruction* member) {
      return std::any_of(member->operands().begin(), member->operands().end(), [&](const Instruction* operand) {
        return !reader.is_member.contains(operand) && IsRootOf(operand, other);
      });
    });
  }

  // Whether what `reader` reads of the other's results is the element at its own place: others would be made again.
  static bool ReadsInPlace(const Cluster& reader, const Cluster& other) {
    if (!Reads(reader, other)) return true;
    std::unordered_map<const Instruction*, bool> in_place;
    for (const Instruction* root : reader.roots) in_place[root] = true;
    for (const Instruction* member : reader.members) {
      const bool keeps = in_place[member] && hlo::IsElementwise(*member);
      for (const Instruction* operand : member->operands()) {
        const auto [known, added] = in_place.try_emplace(operand, keeps);
        if (!added) known->second = known->second && keeps;
      }
    }
    return std::all_of(other.roots.begin(), other.roots.end(), [&](const Instruction* root) {
      const auto known = in_place.find(root);
      return known == in_place.end() || (known->second && root->shape().SameDimensions(reader.roots[0]->shape()));
    });
  }

  std::vector<Cluster>& clusters_;
  ClusterGraph graph_;
  std::unordered_map<const Instruction*, size_t> places_;
};

}  // namespace

void MergeLoops(hlo::Computation& computation, std::vector<Cluster>& clusters) {
  LoopMerger(computation, clusters).Run();
}

}  // namespace hlorun::passes
