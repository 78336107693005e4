// Clusters as the kernels that they will be: who computes what, and which two may become one.
#pragma once

#include <unordered_map>
#include <vector>

#include "passes/fusion/cluster.h"

namespace hlorun::passes {

class ClusterGraph {
 public:
  // Changes `clusters`, which live longer.
  explicit ClusterGraph(std::vector<Cluster>& clusters);

  // The clusters that compute `instruction`; empty for what none does.
  const std::vector<size_t>& OwnersOf(const hlo::Instruction* instruction) const;

  // Whether a result of the two goes into one of them through something else, or one has to wait for the other: joined,
  // they would need themselves. After `most_visited` instructions the answer is yes.
  bool HasWayAround(size_t a, size_t b, size_t most_visited);

  // Whether anything but the cluster reads `root`.
  bool IsReadOutside(const hlo::Instruction* root, size_t cluster) const;

  // The members of both, users before operands. The producer must read nothing of the consumer's.
  static std::vector<hlo::Instruction*> MembersOf(const Cluster& producer, const Cluster& consumer);
  // How many arrays the two read together.
  static size_t ReadsOf(const Cluster& producer, const Cluster& consumer);

  // Has the cluster compute `operand` too, which some of its members read. It must read no members, nor constants.
  void Add(hlo::Instruction* operand, size_t cluster);

  // The consumer becomes both, the producer empty. Roots that the consumer alone reads are roots no more.
  void Join(size_t producer, size_t consumer);

  // Those that were joined with others are gone.
  void RemoveEmpty();

 private:
  struct Node {
    std::vector<size_t> owners;
    size_t seen_by = 0;  // the walk that came here last
  };

  std::vector<Cluster>& clusters_;
  std::unordered_map<const hlo::Instruction*, Node> nodes_;  // of what clusters compute, and of what a walk has seen
  size_t walks_ = 0;
};

}  // namespace hlorun::passes
