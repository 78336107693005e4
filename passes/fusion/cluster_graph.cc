#include "passes/fusion/cluster_graph.h"

#include <algorithm>

namespace hlorun::passes {

using hlo::Instruction;

ClusterGraph::ClusterGraph(std::vector<Cluster>& clusters) : clusters_(clusters) {
  for (size_t i = 0; i < clusters.size(); ++i) {
    for (const Instruction* member : clusters[i].members) nodes_[member].owners.push_back(i);
  }
}

const std::vector<size_t>& ClusterGraph::OwnersOf(const Instruction* instruction) const {
  static const std::vector<size_t> kNone;
  const auto node = nodes_.find(instruction);
  return node == nodes_.end() ? kNone : node->second.owners;
}

bool ClusterGraph::HasWayAround(size_t a, size_t b, size_t most_visited) {
  std::vector<const Instruction*> work;
  size_t seen = 0;
  ++walks_;
  bool around = false;
  const auto visit = [&](const Instruction* value, Node& node) {
    if (node.seen_by == walks_) return;
    node.seen_by = walks_;
    ++seen;
    work.push_back(value);
  };
  const auto reach = [&](const Instruction* next, bool is_own) {
    Node& node = nodes_[next];
    if (node.owners.empty()) visit(next, node);
    for (const size_t owner : node.owners) {
      if (owner == a || owner == b) {
        around |= !is_own;
        continue;
      }
      for (const Instruction* root : clusters_[owner].roots) visit(root, root == next ? node : nodes_[root]);
    }
  };
  const auto follow = [&](const Instruction* value, bool is_own) {
    for (const Instruction* user : value->users()) reach(user, is_own);
    for (const Instruction* successor : value->control_successors()) reach(successor, /*is_own=*/false);
  };
  for (const size_t own : {a, b}) {
    for (const Instruction* root : clusters_[own].roots) follow(root, true);
  }
  while (!work.empty() && !around && seen <= most_visited) {
    const Instruction* value = work.back();
    work.pop_back();
    follow(value, false);
  }
  return around || !work.empty();
}

bool ClusterGraph::IsReadOutside(const Instruction* root, size_t cluster) const {
  if (root->IsRoot() || !root->control_successors().empty()) return true;
  return std::any_of(root->users().begin(), root->users().end(), [&](const Instruction* user) {
    const std::vector<size_t>& owners = OwnersOf(user);
    return owners.empty() || std::any_of(owners.begin(), owners.end(), [&](size_t owner) { return owner != cluster; });
  });
}

std::vector<Instruction*> ClusterGraph::MembersOf(const Cluster& producer, const Cluster& consumer) {
  std::vector<Instruction*> members;
  for (Instruction* member : consumer.members) {
    if (!producer.is_member.contains(member)) members.push_back(member);
  }
  members.insert(members.end(), producer.members.begin(), producer.members.end());
  return members;
}

size_t ClusterGraph::ReadsOf(const Cluster& producer, const Cluster& consumer) {
  size_t reads = producer.reads.size();
  for (const Instruction* read : consumer.reads)
    reads += producer.reads.contains(read) || producer.is_member.contains(read) ? 0 : 1;
  return reads;
}

void ClusterGraph::Add(Instruction* operand, size_t cluster) {
  Cluster& to = clusters_[cluster];
  to.members.push_back(operand);
  to.is_member.insert(operand);
  to.reads.erase(operand);
  for (const Instruction* read : operand->operands()) to.reads.insert(read);
  nodes_[operand].owners.push_back(cluster);
}

void ClusterGraph::Join(size_t producer, size_t consumer) {
  Cluster& from = clusters_[producer];
  Cluster& into = clusters_[consumer];
  into.members = MembersOf(from, into);
  into.is_member.insert(from.is_member.begin(), from.is_member.end());
  into.reads.insert(from.reads.begin(), from.reads.end());
  std::erase_if(into.reads, [&](const Instruction* read) { return into.is_member.contains(read); });
  if (into.hero == nullptr) into.hero = from.hero;
  for (const Instruction* member : from.members) {
    std::vector<size_t>& owners = nodes_.at(member).owners;
    std::erase(owners, producer);
    if (std::find(owners.begin(), owners.end(), consumer) == owners.end()) owners.push_back(consumer);
  }
  for (Instruction* root : from.roots) {
    if (IsReadOutside(root, consumer)) into.roots.push_back(root);
  }
  from = {};
}

void ClusterGraph::RemoveEmpty() {
  std::erase_if(clusters_, [](const Cluster& cluster) { return cluster.roots.empty(); });
}

}  // namespace hlorun::passes
