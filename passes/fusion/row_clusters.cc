#include "passes/fusion/row_clusters.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>

#include "hlo/builder.h"
#include "hlo/elementwise.h"
#include "passes/fusion/cluster_graph.h"

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
  RowMerger(std::vector<Cluster>& clusters, const DeviceSpec& device)
      : clusters_(clusters), graph_(clusters), device_(device) {}

  void Run() {
    for (size_t consumer = 0; consumer < clusters_.size(); ++consumer) {
      while (AbsorbOne(consumer)) {
      }
    }
    graph_.RemoveEmpty();
  }

 private:
  // Takes in one of the reductions whose results `consumer` reads.
  bool AbsorbOne(size_t consumer) {
    const Cluster& cluster = clusters_[consumer];
    if (cluster.roots.empty()) return false;
    for (const Instruction* member : cluster.members) {
      for (const Instruction* operand : member->operands()) {
        if (cluster.is_member.contains(operand)) continue;
        for (const size_t producer : graph_.OwnersOf(operand)) {
          const auto& roots = clusters_[producer].roots;
          if (std::find(roots.begin(), roots.end(), operand) == roots.end() || !MayJoin(producer, consumer)) continue;
          graph_.Join(producer, consumer);
          return true;
        }
      }
    }
    return false;
  }

  bool MayJoin(size_t producer, size_t consumer) {
    const Cluster& from = clusters_[producer];
    const Cluster& into = clusters_[consumer];
    const Instruction* hero = from.hero != nullptr ? from.hero : into.hero;
    if (producer == consumer || hero == nullptr) return false;
    const std::optional<Rows> rows = RowsOf(*hero);
    if (!rows.has_value() || !FitsCache(*rows) || !FillsDevice(*rows)) return false;
    if (into.hero != nullptr ? RowsOf(*into.hero) != rows : !rows->IsWide(into.roots[0]->shape())) return false;
    const std::vector<Instruction*> members = ClusterGraph::MembersOf(from, into);
    if (OperationsIn(members) > kMaxClusterOperations || ClusterGraph::ReadsOf(from, into) > kMaxClusterReads)
      return false;
    if (from.hero == nullptr ? !IsCheapInput(from, *rows, consumer) : !SharesLargeArray(from, into, *rows))
      return false;
    return StaysInRow(members, *rows) && !graph_.HasWayAround(producer, consumer, std::numeric_limits<size_t>::max());
  }

  // A mask that is added to rows before their softmax and the like: done again in each sweep over a row rather than
  // stored and loaded.
  bool IsCheapInput(const Cluster& from, const Rows& rows, size_t consumer) const {
    constexpr size_t kMostOperations = 4;
    return from.roots.size() == 1 && !graph_.IsReadOutside(from.roots[0], consumer) &&
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
      } else if (!hlo::IsElementwise(member) || !(rows.IsWide(member.shape()) || rows.IsReduced(member.shape()))) {
        return false;
      }
    }
    return true;
  }

  std::vector<Cluster>& clusters_;
  ClusterGraph graph_;
  const DeviceSpec& device_;
};

}  // namespace

void MergeRows(std::vector<Cluster>& clusters, const DeviceSpec& device) { RowMerger(clusters, device).Run(); }

}  // namespace hlorun::passes
