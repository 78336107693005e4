#include "passes/spmd/assignment.h"

#include <algorithm>
#include <limits>

#include "hlo/cost_analysis.h"
#include "passes/spmd/reshard.h"

namespace hlorun::passes::spmd {

using hlo::Instruction;

namespace {

// Work in terms of bytes sent: a device computes some 20 flops and moves some 10 bytes of memory in the time that one
// byte takes to a neighbour (100 GFLOP/s, 50 GB/s, 5 GB/s).
constexpr double kFlopsPerByteSent = 20;
constexpr double kBytesMovedPerByteSent = 10;

bool Taken(const FactorAxes& axes, Axis axis) {
  return std::any_of(axes.begin(), axes.end(), [&](const AxisList& list) { return Contains(list, axis); });
}

void AbsorbFactor(int factor, const AxisList& list, FactorAxes& into) {
  AxisList& mine = into[static_cast<size_t>(factor)];
  if (!IsPrefix(mine, list)) return;
  for (size_t i = mine.size(); i < list.size(); ++i) {
    if (Taken(into, list[i])) return;
    mine.push_back(list[i]);
  }
}

bool Combines(FactorKind kind) { return kind == FactorKind::kReduced || kind == FactorKind::kSelected; }

// Forgets the cuts after which results must be combined.
void DropCombined(const FactorRule& rule, FactorAxes& axes) {
  for (size_t f = 0; f < axes.size(); ++f) {
    if (Combines(rule.factors[f].kind)) axes[f].clear();
  }
}

// Scatters combine only by reducers that a collective knows, and only where no padding would be scattered.
void DropUncombinable(const Mesh& mesh, const Instruction& op, const FactorRule& rule, FactorAxes& axes) {
  if (!op.Is(hlo::Opcode::kScatter)) return;
  const bool combines = CombinerOf(op).has_value();
  for (size_t f = 0; f < axes.size(); ++f) {
    const bool even = rule.factors[f].size % mesh.SizeOf(axes[f]) == 0;
    if (rule.factors[f].kind == FactorKind::kReduced && !(combines && even)) axes[f].clear();
  }
}

class Chooser {
 public:
  Chooser(const Mesh& mesh, const Instruction& op, const FactorRule& rule, const std::vector<MeshSharding>& operands,
          const std::vector<MeshSharding>& results)
      : mesh_(mesh),
        op_(op),
        rule_(rule),
        operands_(operands),
        results_(results),
        leaves_(hlo::FlattenShape(op.shape())) {
    const hlo::Cost cost = hlo::CostOf(op);
    work_ = cost.flops / kFlopsPerByteSent + cost.transcendentals / kFlopsPerByteSent * 10 +
            (cost.bytes_read + cost.bytes_written) / kBytesMovedPerByteSent;
  }

  FactorAxes Choose() {
    // Every tensor once leads; the others add what does not contradict it.
    const auto tensors = static_cast<int64_t>(operands_.size());
    for (int64_t leader = -1; leader < tensors; ++leader) {
      FactorAxes axes(rule_.factors.size());
      Absorb(leader, axes);
      for (int64_t follower = -1; follower < tensors; ++follower) Absorb(follower, axes);
      Consider(axes);
      DropCombined(rule_, axes);
      Consider(axes);
      if (best_communication_ == 0) break;
    }
    return best_;
  }

 private:
  void Absorb(int64_t tensor, FactorAxes& axes) const {
    if (tensor >= 0) {
      AbsorbTensor(mesh_, rule_, rule_.operands[static_cast<size_t>(tensor)], operands_[static_cast<size_t>(tensor)],
                   axes);
      return;
    }
    for (size_t leaf = 0; leaf < results_.size(); ++leaf) {
      AbsorbTensor(mesh_, rule_, rule_.results[leaf], results_[leaf], axes);
    }
  }

  void Consider(FactorAxes axes) {
    Legalize(mesh_, rule_, axes);
    DropUncombinable(mesh_, op_, rule_, axes);
    double communication = 0;
    for (size_t i = 0; i < operands_.size(); ++i) {
      const hlo::Shape& shape = op_.operand(static_cast<int64_t>(i))->shape();
      if (!shape.IsArray()) continue;
      communication +=
          ReshardBytes(mesh_, shape, operands_[i], ShardingOf(rule_.operands[i], axes, operands_[i].manual));
    }
    AxisList partial = PartialAxes(rule_, axes);
    const bool combines = CombinerOf(op_).has_value();
    for (size_t leaf = 0; leaf < results_.size(); ++leaf) {
      if (!leaves_[leaf].IsArray()) continue;
      MeshSharding produced = ShardingOf(rule_.results[leaf], axes, results_[leaf].manual);
      if (combines) produced.partial = partial;
      if (!combines && !partial.empty()) {
        communication += static_cast<double>(LocalShape(mesh_, leaves_[leaf], produced).ByteSize()) *
                         static_cast<double>(mesh_.SizeOf(partial));
      }
      communication += ReshardBytes(mesh_, leaves_[leaf], produced, results_[leaf]);
    }
    int64_t parts = 1;
    for (const AxisList& list : axes) parts *= mesh_.SizeOf(list);
    const double cost = communication + work_ / static_cast<double>(parts);
    if (cost >= best_cost_) return;
    best_cost_ = cost;
    best_communication_ = parts == mesh_.device_count() ? communication : 1;
    best_ = std::move(axes);
  }

  const Mesh& mesh_;
  const Instruction& op_;
  const FactorRule& rule_;
  const std::vector<MeshSharding>& operands_;
  const std::vector<MeshSharding>& results_;
  std::vector<hlo::Shape> leaves_;
  double work_ = 0;
  double best_cost_ = std::numeric_limits<double>::infinity();
  double best_communication_ = 1;
  FactorAxes best_;
};

}  // namespace

void AbsorbDimension(const Mesh& mesh, const FactorRule& rule, const FactorRule::Dimension& dimension,
                     const AxisList& axes, FactorAxes& into) {
  if (dimension.size() == 1) return AbsorbFactor(dimension[0], axes, into);
  size_t next = 0;
  for (const int factor : dimension) {
    const int64_t size = rule.factors[static_cast<size_t>(factor)].size;
    AxisList list;
    int64_t parts = 1;
    while (next < axes.size() && size % (parts * mesh.SizeOf(axes[next])) == 0) {
      parts *= mesh.SizeOf(axes[next]);
      list.push_back(axes[next++]);
    }
    AbsorbFactor(factor, list, into);
    if (parts != size) return;
  }
}

void AbsorbTensor(const Mesh& mesh, const FactorRule& rule, const FactorRule::Tensor& tensor,
                  const MeshSharding& sharding, FactorAxes& into) {
  for (size_t d = 0; d < tensor.size(); ++d) AbsorbDimension(mesh, rule, tensor[d], sharding.dims[d], into);
}

void Legalize(const Mesh& mesh, const FactorRule& rule, FactorAxes& axes) {
  for (size_t f = 0; f < axes.size(); ++f) {
    if (rule.factors[f].kind == FactorKind::kBlocked || rule.factors[f].size == 0) axes[f].clear();
  }
  const auto visit = [&](const FactorRule::Tensor& tensor) {
    bool changed = false;
    for (const FactorRule::Dimension& dimension : tensor) {
      if (dimension.size() < 2) continue;
      bool open = true;
      for (const int factor : dimension) {
        AxisList& list = axes[static_cast<size_t>(factor)];
        const int64_t size = rule.factors[static_cast<size_t>(factor)].size;
        if (!list.empty() && (!open || size % mesh.SizeOf(list) != 0)) {
          list.clear();
          changed = true;
        }
        open = open && mesh.SizeOf(list) == size;
      }
    }
    return changed;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const FactorRule::Tensor& tensor : rule.operands) changed |= visit(tensor);
    for (const FactorRule::Tensor& tensor : rule.results) changed |= visit(tensor);
  }
}

MeshSharding ShardingOf(const FactorRule::Tensor& tensor, const FactorAxes& axes, const AxisList& manual) {
  MeshSharding sharding = MeshSharding::Replicated(static_cast<int64_t>(tensor.size()));
  for (size_t d = 0; d < tensor.size(); ++d) {
    for (const int factor : tensor[d]) {
      const AxisList& list = axes[static_cast<size_t>(factor)];
      sharding.dims[d].insert(sharding.dims[d].end(), list.begin(), list.end());
    }
  }
  sharding.manual = manual;
  return sharding;
}

AxisList PartialAxes(const FactorRule& rule, const FactorAxes& axes) {
  AxisList partial;
  for (size_t f = 0; f < axes.size(); ++f) {
    if (Combines(rule.factors[f].kind)) partial.insert(partial.end(), axes[f].begin(), axes[f].end());
  }
  std::sort(partial.begin(), partial.end());
  return partial;
}

FactorAxes ChooseAxes(const Mesh& mesh, const Instruction& op, const FactorRule& rule,
                      const std::vector<MeshSharding>& operands, const std::vector<MeshSharding>& results) {
  return Chooser(mesh, op, rule, operands, results).Choose();
}

}  // namespace hlorun::passes::spmd
