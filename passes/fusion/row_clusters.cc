#include "passes/fusion/row_clusters.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "hlo/builder.h"

namespace hlorun::passes {
namespace {

using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;

// Rows shorter than a vector gain nothing.
constexpr int64_t kShortestRow = 16;

// The dimensions of large arrays, and how many of them number the rows.
struct Rows {
  Dims dimensions;
  size_t kept = 0;
  bool operator==(const Rows&) const = default;

  bool IsWide(const hlo::Shape& shape) const { return shape.dimensions() == dimensions; }
  bool IsReduced(const hlo::Shape& shape) const {
    return shape.dimensions().size() == kept &&
           std::equal(shape.dimensions().begin(), shape.dimensions().end(), dimensions.begin());
  }
};

// Of a reduction of innermost dimensions by one opcode.
std::optional<Rows> RowsOf(const Instruction& reduce) {
  if (!reduce.Is(Opcode::kReduce) || !reduce.shape().IsArray() || !hlo::ReducerOpcode(*reduce.called()))
    return std::nullopt;
  Rows rows{reduce.operand(0)->shape().dimensions(), reduce.shape().dimensions().size()};
  std::vector<int64_t> reduced = reduce.dimensions();
  std::sort(reduced.begin(), reduced.end());
  for (size_t i = 0; i < reduced.size(); ++i) {
    if (reduced[i] != static_cast<int64_t>(rows.kept + i)) return std::nullopt;
  }
  return rows;
}

class RowMerger {
 public:
  RowMerger(std::vector<Cluster>& clusters, const DeviceSpec& device) : clusters_(clusters), device_(device) {
    for (size_t i = 0; i < clusters.size(); ++i) {
      for (const Instruction* member : clusters[i].members) owners_[member].push_back(i);
    }
  }

  void Run() {
    for (size_t consumer = 0; consumer < clusters_.size(); ++consumer) {
      while (AbsorbOne(consumer)) {
      }
    }
    std::erase_if(clusters_, [](const Cluster& cluster) { return cluster.roots.empty(); });
  }

 private:
  // Takes in one of the reductions whose results `consumer` reads.
  bool AbsorbOne(size_t consumer) {
    const Cluster& cluster = clusters_[consumer];
    if (cluster.roots.empty()) return false;
    for (const Instruction* member : cluster.members) {
      for (const Instruction* operand : member->operands()) {
        const auto owners = owners_.find(operand);
        if (owners == owners_.end() || cluster.is_member.contains(operand)) continue;
        for (const size_t producer : owners->second) {
          const auto& roots = clusters_[producer].roots;
          if (std::find(roots.begin(), roots.end(), operand) == roots.end() || !MayJoin(producer, consumer)) continue;
          Join(producer, consumer);
          return true;
        }
      }
    }
    return false;
  }

  bool MayJoin(size_t producer, size_t consumer) const {
    const Cluster& from = clusters_[producer];
    const Cluster& into = clusters_[consumer];
    const Instruction* hero = from.hero != nullptr ? from.hero : into.hero;
    if (producer == consumer || hero == nullptr) return false;
    const std::optional<Rows> rows = RowsOf(*hero);
    if (!rows.has_value() || !FitsCache(*rows) || !FillsDevice(*rows)) return false;
    if (into.hero != nullptr ? RowsOf(*into.hero) != rows : !rows->IsWide(into.roots[0]->shape())) return false;
    const std::vector<Instruction*> members = MembersOf(from, into);
    if (OperationsIn(members) > kMaxClusterOperations || ReadsOf(from, into) > kMaxClusterReads) return false;
    if (from.hero == nullptr ? !IsCheapInput(from, *rows, consumer) : !SharesLargeArray(from, into, *rows))
      return false;
    return StaysInRow(members, *rows) && !HasWayAround(producer, consumer);
  }

  // A mask that is added to rows before their softmax and the like: done again in each sweep over a row rather than
  // stored and loaded.
  bool IsCheapInput(const Cluster& from, const Rows& rows, size_t consumer) const {
    constexpr size_t kMostOperations = 4;
    return from.roots.size() == 1 && !IsReadOutside(from.roots[0], consumer) &&
           OperationsIn(from.members) <= kMostOperations &&
           std::all_of(from.members.begin(), from.members.end(), [&](const Instruction* member) {
             if (member->Is(Opcode::kBroadcast)) return true;
             return member->Has(hlo::kElementwise) && !member->Has(hlo::kExpensive) && rows.IsWide(member->shape());
           });
  }

  // A row of each large array stays in the first cache levels from one reduction to the next.
  bool FitsCache(const Rows& rows) const {
    int64_t length = 1;
    for (size_t d = rows.kept; d < rows.dimensions.size(); ++d) length *= rows.dimensions[d];
    constexpr int64_t kBytes = 4;
    return length >= kShortestRow && length * kBytes <= device_.l2_bytes / 4;
  }

  // On a GPU each row is a group's: few and long ones are cut into parts, by a kernel for each reduction.
  bool FillsDevice(const Rows& rows) const {
    constexpr int64_t kFewestRows = 64, kLongestRow = 1 << 16, kSmallArray = 1 << 16;
    if (device_.device_class != DeviceClass::kGpu) return true;
    const auto reduced = rows.dimensions.begin() + static_cast<std::ptrdiff_t>(rows.kept);
    const int64_t number = hlo::CheckedProduct({rows.dimensions.begin(), reduced});
    const int64_t length = hlo::CheckedProduct({reduced, rows.dimensions.end()});
    return number * length <= kSmallArray || (number >= kFewestRows && length <= kLongestRow);
  }

  // Both read it, or the producer makes it for the consumer.
  static bool SharesLargeArray(const Cluster& producer, const Cluster& consumer, const Rows& rows) {
    const auto is_read = [&](const Instruction* array) {
      return rows.IsWide(array->shape()) && consumer.reads.contains(array);
    };
    return std::any_of(producer.reads.begin(), producer.reads.end(), is_read) ||
           std::any_of(producer.roots.begin(), producer.roots.end(), is_read);
  }

  static size_t ReadsOf(const Cluster& a, const Cluster& b) {
    size_t reads = a.reads.size();
    for (const Instruction* read : b.reads) reads += a.reads.contains(read) || a.is_member.contains(read) ? 0 : 1;
    return reads;
  }

  // Users before operands: nothing in the producer reads the consumer.
  static std::vector<Instruction*> MembersOf(const Cluster& producer, const Cluster& consumer) {
    std::vector<Instruction*> members;
    for (Instruction* member : consumer.members) {
      if (!producer.is_member.contains(member)) members.push_back(member);
    }
    members.insert(members.end(), producer.members.begin(), producer.members.end());
    return members;
  }

  // Whether whatever depends on a reduction needs it for its own row only.
  static bool StaysInRow(const std::vector<Instruction*>& members, const Rows& rows) {
    std::unordered_map<const Instruction*, bool> depends;
    for (auto it = members.rbegin(); it != members.rend(); ++it) {
      const Instruction& member = **it;
      const auto& operands = member.operands();
      const bool after_reduce = std::any_of(operands.begin(), operands.end(), [&](const Instruction* operand) {
        const auto known = depends.find(operand);
        return known != depends.end() && known->second;
      });
      depends[&member] = after_reduce || member.Is(Opcode::kReduce);
      if (member.Is(Opcode::kReduce) && RowsOf(member) != rows) return false;
      if (!after_reduce || member.Is(Opcode::kReduce)) continue;
      if (member.Is(Opcode::kBroadcast)) {
        const auto& dimensions = member.dimensions();
        if (!rows.IsWide(member.shape()) || !rows.IsReduced(member.operand(0)->shape())) return false;
        for (size_t i = 0; i < dimensions.size(); ++i) {
          if (dimensions[i] != static_cast<int64_t>(i)) return false;
        }
      } else if (!(member.Has(hlo::kElementwise) || member.Is(Opcode::kClamp)) ||
                 !(rows.IsWide(member.shape()) || rows.IsReduced(member.shape()))) {
        return false;
      }
    }
    return true;
  }

  // Whether a result of the two goes into one of them through something else: joined, they would need themselves.
  bool HasWayAround(size_t producer, size_t consumer) const {
    std::vector<const Instruction*> work;
    std::unordered_set<const Instruction*> seen;
    bool around = false;
    const auto follow = [&](const Instruction* value, bool is_own) {
      for (const Instruction* user : value->users()) {
        const auto owners = owners_.find(user);
        if (owners == owners_.end()) {
          if (seen.insert(user).second) work.push_back(user);
          continue;
        }
        for (const size_t owner : owners->second) {
          if (owner == producer || owner == consumer) {
            around |= !is_own;
            continue;
          }
          for (const Instruction* root : clusters_[owner].roots) {
            if (seen.insert(root).second) work.push_back(root);
          }
        }
      }
    };
    for (const size_t own : {producer, consumer}) {
      for (const Instruction* root : clusters_[own].roots) follow(root, true);
    }
    while (!work.empty() && !around) {
      const Instruction* value = work.back();
      work.pop_back();
      follow(value, false);
    }
    return around;
  }

  // Whether anything but the cluster reads `root`.
  bool IsReadOutside(const Instruction* root, size_t cluster) const {
    if (root->IsRoot() || !root->control_successors().empty()) return true;
    return std::any_of(root->users().begin(), root->users().end(), [&](const Instruction* user) {
      const auto owners = owners_.find(user);
      return owners == owners_.end() ||
             std::any_of(owners->second.begin(), owners->second.end(), [&](size_t owner) { return owner != cluster; });
    });
  }

  void Join(size_t producer, size_t consumer) {
    Cluster& from = clusters_[producer];
    Cluster& into = clusters_[consumer];
    into.members = MembersOf(from, into);
    into.is_member.insert(from.is_member.begin(), from.is_member.end());
    into.reads.insert(from.reads.begin(), from.reads.end());
    std::erase_if(into.reads, [&](const Instruction* read) { return into.is_member.contains(read); });
    if (into.hero == nullptr) into.hero = from.hero;
    for (const Instruction* member : from.members) {
      std::vector<size_t>& owners = owners_.at(member);
      std::erase(owners, producer);
      if (std::find(owners.begin(), owners.end(), consumer) == owners.end()) owners.push_back(consumer);
    }
    for (Instruction* root : from.roots) {
      if (IsReadOutside(root, consumer)) into.roots.push_back(root);
    }
    from = {};
  }

  std::vector<Cluster>& clusters_;
  const DeviceSpec& device_;
  std::unordered_map<const Instruction*, std::vector<size_t>> owners_;
};

}  // namespace

void MergeRows(std::vector<Cluster>& clusters, const DeviceSpec& device) { RowMerger(clusters, device).Run(); }

}  // namespace hlorun::passes
