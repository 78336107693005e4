#include "passes/spmd/reshard.h"

#include <algorithm>

#include "hlo/error.h"

namespace hlorun::passes::spmd {

using hlo::Instruction;
using Kind = ReshardStep::Kind;

namespace {

class Planner {
 public:
  Planner(const Mesh& mesh, const hlo::Shape& global, const MeshSharding& from, const MeshSharding& to)
      : mesh_(mesh), global_(global), now_(from), to_(to) {}

  std::vector<ReshardStep> Plan() {
    while (SliceOnce(now_.partial)) {
    }
    ReducePartial();
    while (now_.dims != to_.dims) {
      if (SliceOnce({})) continue;
      if (PermuteAll() || ExchangeOnce()) continue;
      GatherOnce();
    }
    return std::move(steps_);
  }

 private:
  const AxisList& Now(int64_t d) const { return now_.dims[static_cast<size_t>(d)]; }
  const AxisList& To(int64_t d) const { return to_.dims[static_cast<size_t>(d)]; }
  int64_t rank() const { return global_.rank(); }
  bool Divides(int64_t d, const AxisList& axes) const { return global_.dimension(d) % mesh_.SizeOf(axes) == 0; }

  // Parts of parts lie where the target wants them only where nothing is padded.
  bool MayExtend(int64_t d, const AxisList& longer) const {
    return IsPrefix(Now(d), longer) && Now(d) != longer && (Now(d).empty() || Divides(d, longer));
  }

  double LocalBytes() const { return static_cast<double>(LocalShape(mesh_, global_, now_).ByteSize()); }

  void Push(Kind kind, int64_t dimension, int64_t joined, AxisList axes, MeshSharding after, double bytes) {
    steps_.push_back({kind, dimension, joined, std::move(axes), now_, after, bytes});
    now_ = std::move(after);
  }

  // Dropping what other devices keep costs nothing.
  bool SliceOnce(const AxisList& reserved) {
    for (int64_t d = 0; d < rank(); ++d) {
      if (!MayExtend(d, To(d))) continue;
      AxisList extra(To(d).begin() + static_cast<int64_t>(Now(d).size()), To(d).end());
      const auto used =
          std::find_if(extra.begin(), extra.end(), [&](Axis a) { return now_.Uses(a) || Contains(reserved, a); });
      extra.erase(used, extra.end());
      if (extra.empty()) continue;
      MeshSharding after = now_;
      AxisList& axes = after.dims[static_cast<size_t>(d)];
      axes.insert(axes.end(), extra.begin(), extra.end());
      // Cutting an uneven dimension halfway would put the rest of the cut at the wrong places.
      if (axes != To(d) && !Divides(d, To(d))) continue;
      Push(Kind::kSlice, d, d, std::move(extra), std::move(after), 0);
      return true;
    }
    return false;
  }

  void ReducePartial() {
    for (int64_t d = 0; d < rank() && !now_.partial.empty(); ++d) {
      if (!MayExtend(d, To(d)) || !Divides(d, To(d))) continue;
      AxisList extra(To(d).begin() + static_cast<int64_t>(Now(d).size()), To(d).end());
      const auto end = std::find_if(extra.begin(), extra.end(), [&](Axis a) { return !Contains(now_.partial, a); });
      extra.erase(end, extra.end());
      if (extra.empty()) continue;
      MeshSharding after = now_;
      for (const Axis axis : extra) {
        after.dims[static_cast<size_t>(d)].push_back(axis);
        std::erase(after.partial, axis);
      }
      const auto parts = static_cast<double>(mesh_.SizeOf(extra));
      Push(Kind::kReduceScatter, d, d, std::move(extra), std::move(after), LocalBytes() * (parts - 1) / parts);
    }
    AxisList rest;
    for (const Axis axis : now_.partial) {
      if (!Contains(to_.partial, axis)) rest.push_back(axis);
    }
    if (rest.empty()) return;
    MeshSharding after = now_;
    for (const Axis axis : rest) std::erase(after.partial, axis);
    const auto parts = static_cast<double>(mesh_.SizeOf(rest));
    Push(Kind::kAllReduce, 0, 0, std::move(rest), std::move(after), 2 * LocalBytes() * (parts - 1) / parts);
  }

  // Only the order or the choice of axes differs: each device wants what another one has.
  bool PermuteAll() {
    for (int64_t d = 0; d < rank(); ++d) {
      if (mesh_.SizeOf(Now(d)) != mesh_.SizeOf(To(d))) return false;
    }
    MeshSharding after = now_;
    after.dims = to_.dims;
    Push(Kind::kPermute, 0, 0, {}, std::move(after), LocalBytes());
    return true;
  }

  // The end of one dimension's axes moves to the end of another's.
  bool ExchangeOnce() {
    for (int64_t i = 0; i < rank(); ++i) {
      const size_t keep = Kept(i);
      for (size_t first = keep; first < Now(i).size(); ++first) {
        const AxisList moved(Now(i).begin() + static_cast<int64_t>(first), Now(i).end());
        for (int64_t j = 0; j < rank(); ++j) {
          AxisList longer = Now(j);
          longer.insert(longer.end(), moved.begin(), moved.end());
          if (j == i || !IsPrefix(longer, To(j)) || !Divides(i, Now(i)) || !Divides(j, longer)) continue;
          MeshSharding after = now_;
          after.dims[static_cast<size_t>(i)].resize(first);
          after.dims[static_cast<size_t>(j)] = longer;
          const auto parts = static_cast<double>(mesh_.SizeOf(moved));
          Push(Kind::kAllToAll, j, i, moved, std::move(after), LocalBytes() * (parts - 1) / parts);
          return true;
        }
      }
    }
    return false;
  }

  // How many of a dimension's axes may stay as they are.
  size_t Kept(int64_t d) const {
    size_t common = 0;
    while (common < Now(d).size() && common < To(d).size() && Now(d)[common] == To(d)[common]) ++common;
    if (common == Now(d).size()) return common == To(d).size() || common == 0 || Divides(d, To(d)) ? common : 0;
    return Divides(d, Now(d)) && Divides(d, To(d)) ? common : 0;
  }

  void GatherOnce() {
    // First what must be gathered anyway; then what stands in the way of another cut.
    int64_t chosen = -1;
    for (int64_t d = 0; d < rank(); ++d) {
      if (Kept(d) == Now(d).size()) continue;
      if (chosen < 0 || (To(d).size() <= Kept(d) && To(chosen).size() > Kept(chosen))) chosen = d;
    }
    HLORUN_CHECK(chosen >= 0);
    const size_t keep = Kept(chosen);
    AxisList removed(Now(chosen).begin() + static_cast<int64_t>(keep), Now(chosen).end());
    MeshSharding after = now_;
    after.dims[static_cast<size_t>(chosen)].resize(keep);
    const auto parts = static_cast<double>(mesh_.SizeOf(removed));
    Push(Kind::kAllGather, chosen, chosen, std::move(removed), std::move(after), LocalBytes() * (parts - 1));
  }

  const Mesh& mesh_;
  const hlo::Shape& global_;
  MeshSharding now_;
  const MeshSharding& to_;
  std::vector<ReshardStep> steps_;
};

Instruction* EmitSlice(LocalBuilder& build, const hlo::Shape& global, Instruction* local, const ReshardStep& step) {
  const Mesh& mesh = build.mesh();
  const int64_t size = LocalShape(mesh, global, step.after).dimension(step.dimension);
  return build.CutAt(local, step.dimension, step.axes, {0, size}, size);
}

Instruction* EmitGather(LocalBuilder& build, const hlo::Shape& global, Instruction* local, const ReshardStep& step) {
  Instruction* gathered = build.AllGather(local, step.dimension, step.axes);
  const int64_t size = LocalShape(build.mesh(), global, step.after).dimension(step.dimension);
  return build.SliceOf(gathered, step.dimension, 0, size);
}

// Device t gets its part from the device that has it and whose position among the copies is t's; where a part is of one
// place along manual axes, from a device of that place.
Instruction* EmitPermute(LocalBuilder& build, Instruction* local, const ReshardStep& step) {
  const Mesh& mesh = build.mesh();
  const auto axes_of = [](const MeshSharding& sharding) {
    AxisList axes;
    for (const AxisList& dim : sharding.dims) axes.insert(axes.end(), dim.begin(), dim.end());
    axes.insert(axes.end(), sharding.manual.begin(), sharding.manual.end());
    return axes;
  };
  const AxisList from = axes_of(step.before), to = axes_of(step.after);
  std::vector<std::vector<int64_t>> holders(static_cast<size_t>(mesh.SizeOf(from))), takers(holders.size());
  for (int64_t device = 0; device < mesh.device_count(); ++device) {
    holders[static_cast<size_t>(mesh.Coordinate(device, from))].push_back(device);
    takers[static_cast<size_t>(mesh.Coordinate(device, to))].push_back(device);
  }
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (size_t part = 0; part < holders.size(); ++part) {
    std::vector<int64_t> sources = holders[part], targets = takers[part];
    for (const int64_t device : holders[part]) {
      const auto stays = std::find(targets.begin(), targets.end(), device);
      if (stays == targets.end()) continue;
      pairs.emplace_back(device, device);
      targets.erase(stays);
      std::erase(sources, device);
    }
    for (size_t i = 0; i < sources.size(); ++i) pairs.emplace_back(sources[i], targets[i]);
  }
  std::sort(pairs.begin(), pairs.end());
  return build.Permute(local, std::move(pairs));
}

}  // namespace

const char* StepName(Kind kind) {
  static constexpr const char* kNames[] = {"slice",      "all-reduce", "reduce-scatter",
                                           "all-gather", "all-to-all", "collective-permute"};
  return kNames[static_cast<size_t>(kind)];
}

std::vector<ReshardStep> PlanReshard(const Mesh& mesh, const hlo::Shape& global, const MeshSharding& from,
                                     const MeshSharding& to) {
  return Planner(mesh, global, from, to).Plan();
}

double ReshardBytes(const Mesh& mesh, const hlo::Shape& global, const MeshSharding& from, const MeshSharding& to) {
  if (from == to) return 0;
  double bytes = 0;
  for (const ReshardStep& step : PlanReshard(mesh, global, from, to)) bytes += step.bytes;
  return bytes;
}

Instruction* EmitReshard(LocalBuilder& build, const hlo::Shape& global, Instruction* local,
                         const std::vector<ReshardStep>& steps, hlo::Opcode reducer) {
  for (const ReshardStep& step : steps) {
    switch (step.kind) {
      case Kind::kSlice: local = EmitSlice(build, global, local, step); break;
      case Kind::kAllReduce: local = build.AllReduce(local, step.axes, reducer); break;
      case Kind::kReduceScatter: local = build.ReduceScatter(local, step.dimension, step.axes, reducer); break;
      case Kind::kAllGather: local = EmitGather(build, global, local, step); break;
      case Kind::kAllToAll: local = build.AllToAll(local, step.dimension, step.joined, step.axes); break;
      case Kind::kPermute: local = EmitPermute(build, local, step); break;
    }
  }
  return local;
}

}  // namespace hlorun::passes::spmd
