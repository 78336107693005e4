#include <algorithm>
#include <unordered_map>

#include "passes/fusion/cluster.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

class SiblingMerger {
 public:
  explicit SiblingMerger(std::vector<Cluster>& clusters) : clusters_(clusters) {
    for (size_t i = 0; i < clusters.size(); ++i) Own(i);
  }

  void Run() {
    for (size_t i = 0; i < clusters_.size(); ++i) {
      if (!IsCandidate(clusters_[i])) continue;
      for (const Instruction* shared : LargeReads(clusters_[i])) {
        for (const Instruction* user : shared->users()) TryMergeAll(i, user);
      }
    }
    std::erase_if(clusters_, [](const Cluster& cluster) { return cluster.roots.empty(); });
  }

 private:
  static bool IsCandidate(const Cluster& cluster) {
    return !cluster.roots.empty() && cluster.hero != nullptr && cluster.hero->Is(Opcode::kReduce) &&
           cluster.hero->shape().IsArray();
  }

  // Arrays as large as what is reduced, in the order of their readers: the result must not depend on addresses.
  static std::vector<const Instruction*> LargeReads(const Cluster& cluster) {
    std::vector<const Instruction*> large;
    const int64_t elements = cluster.hero->operand(0)->shape().ElementCount();
    for (const Instruction* member : cluster.members) {
      for (const Instruction* operand : member->operands()) {
        if (!cluster.reads.contains(operand) || !operand->shape().IsArray()) continue;
        if (operand->shape().ElementCount() < elements) continue;
        if (std::find(large.begin(), large.end(), operand) == large.end()) large.push_back(operand);
      }
    }
    return large;
  }

  void Own(size_t cluster) {
    for (const Instruction* member : clusters_[cluster].members) owners_[member].push_back(cluster);
  }

  void TryMergeAll(size_t into, const Instruction* user) {
    const auto owners = owners_.find(user);
    if (owners == owners_.end()) return;
    const std::vector<size_t> candidates = owners->second;
    for (const size_t other : candidates) {
      if (other != into && Matches(clusters_[into], clusters_[other]) && !Reaches(into, other) &&
          !Reaches(other, into)) {
        Merge(into, other);
      }
    }
  }

  // Sums of all of them are in registers at a time.
  static constexpr size_t kMostOperations = 96;

  static bool Matches(const Cluster& a, const Cluster& b) {
    if (!IsCandidate(b)) return false;
    const Instruction* x = a.hero;
    const Instruction* y = b.hero;
    size_t reads = a.reads.size();
    for (const Instruction* read : b.reads) reads += a.reads.contains(read) ? 0 : 1;
    return x->dimensions() == y->dimensions() && x->operand(0)->shape().SameDimensions(y->operand(0)->shape()) &&
           OperationsIn(a.members) + OperationsIn(b.members) <= kMostOperations && reads <= kMaxClusterReads;
  }

  // Whether a result of `from` is needed to compute `to`, merged clusters counting as one.
  bool Reaches(size_t from, size_t to) const {
    std::vector<const Instruction*> work(clusters_[from].roots.begin(), clusters_[from].roots.end());
    std::unordered_set<const Instruction*> seen(work.begin(), work.end());
    const auto visit = [&](const Instruction* next) {
      if (seen.insert(next).second) work.push_back(next);
    };
    while (!work.empty()) {
      const Instruction* at = work.back();
      work.pop_back();
      for (const Instruction* user : at->users()) {
        const auto owners = owners_.find(user);
        if (owners == owners_.end()) {
          visit(user);
          continue;
        }
        for (const size_t owner : owners->second) {
          if (owner == to) return true;
          for (const Instruction* root : clusters_[owner].roots) visit(root);
        }
      }
      for (const Instruction* successor : at->control_successors()) visit(successor);
    }
    return false;
  }

  void Merge(size_t into, size_t other) {
    Cluster& a = clusters_[into];
    Cluster& b = clusters_[other];
    for (const Instruction* member : b.members) {
      std::vector<size_t>& owners = owners_.at(member);
      std::erase(owners, other);
      if (std::find(owners.begin(), owners.end(), into) == owners.end()) owners.push_back(into);
    }
    // Members of both come once, as late as the later of them: users stay before operands.
    std::vector<Instruction*> members;
    for (Instruction* member : a.members) {
      if (!b.is_member.contains(member)) members.push_back(member);
    }
    members.insert(members.end(), b.members.begin(), b.members.end());
    for (const Instruction* member : b.members) a.is_member.insert(member);
    a.members = std::move(members);
    for (const Instruction* read : b.reads) a.reads.insert(read);
    a.roots.insert(a.roots.end(), b.roots.begin(), b.roots.end());
    b = {};
  }

  std::vector<Cluster>& clusters_;
  std::unordered_map<const Instruction*, std::vector<size_t>> owners_;
};

}  // namespace

void MergeSiblingReductions(std::vector<Cluster>& clusters) { SiblingMerger(clusters).Run(); }

}  // namespace hlorun::passes
