#include "passes/spmd/scatter_reductions.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "hlo/builder.h"
#include "passes/spmd/device_values.h"
#include "passes/spmd/group_positions.h"

namespace hlorun::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// A sum, and everything between it and the slices that all of its readers end in.
struct Kept {
  int64_t operand = 0;         // of the all-reduce
  Instruction* sum = nullptr;  // the all-reduce, or its element
  int64_t dimension = -1;
  std::vector<Instruction*> between;  // operands first
  std::vector<Instruction*> slices;
};

class Scatterer {
 public:
  Scatterer(Computation* computation, spmd::DeviceValues& values) : computation_(computation), values_(values) {}

  bool Run() {
    std::vector<Instruction*> all_reduces = computation_->PostOrder();
    std::erase_if(all_reduces, [](const Instruction* i) { return !i->Is(Opcode::kAllReduce); });
    bool changed = false;
    for (Instruction* all_reduce : all_reduces) changed |= Rewrite(all_reduce);
    return changed;
  }

 private:
  bool Rewrite(Instruction* all_reduce) {
    if (!all_reduce->control_predecessors().empty() || !all_reduce->control_successors().empty()) return false;
    const std::optional<spmd::GroupPositions> positions = spmd::PositionsIn(*all_reduce);
    if (!positions) return false;
    std::vector<Kept> found;
    for (Instruction* sum : SumsOf(all_reduce)) {
      // One after the other: two sums may lead to the same slices.
      std::optional<Kept> kept = KeptOf(sum, *positions);
      if (!kept) continue;
      Scatter(all_reduce, *kept);
      found.push_back(std::move(*kept));
    }
    if (!found.empty()) RemoveOperands(all_reduce, found);
    return !found.empty();
  }

  // The all-reduce, or the elements of a tuple's that are read as such; none where anything else reads it.
  static std::vector<Instruction*> SumsOf(Instruction* all_reduce) {
    if (all_reduce->shape().IsArray()) return {all_reduce};
    if (all_reduce->IsRoot()) return {};
    std::vector<Instruction*> sums;
    std::unordered_set<int64_t> elements;
    for (Instruction* user : all_reduce->users()) {
      if (!user->Is(Opcode::kGetTupleElement) || !elements.insert(user->tuple_index()).second) return {};
      sums.push_back(user);
    }
    return sums;
  }

  std::optional<Kept> KeptOf(Instruction* sum, const spmd::GroupPositions& positions) {
    Kept kept;
    kept.operand = sum->Is(Opcode::kGetTupleElement) ? sum->tuple_index() : 0;
    kept.sum = sum;
    if (!AddReadersOf(sum, positions, kept) || kept.slices.empty()) return std::nullopt;
    std::vector<Instruction*> order = computation_->PostOrder();
    const std::unordered_set<Instruction*> between(kept.between.begin(), kept.between.end());
    std::erase_if(order, [&](Instruction* i) { return !between.contains(i); });
    kept.between = std::move(order);
    return kept;
  }

  // Whether everything that reads `value` is a slice of the device's own part, or leads to such slices alone.
  bool AddReadersOf(Instruction* value, const spmd::GroupPositions& positions, Kept& kept) {
    if (value->IsRoot() || value->users().empty()) return false;
    for (Instruction* user : value->users()) {
      if (!user->control_predecessors().empty() || !user->control_successors().empty()) return false;
      if (user->Is(Opcode::kDynamicSlice)) {
        const int64_t dimension = OwnDimension(*user, *value, positions);
        if (dimension < 0 || (kept.dimension >= 0 && dimension != kept.dimension)) return false;
        kept.dimension = dimension;
        kept.slices.push_back(user);
      } else if (std::find(kept.between.begin(), kept.between.end(), user) == kept.between.end()) {
        if (!IsElementByElement(*user, *value)) return false;
        kept.between.push_back(user);
        if (!AddReadersOf(user, positions, kept)) return false;
      }
    }
    return true;
  }

  static bool IsElementByElement(const Instruction& user, const Instruction& value) {
    if (!user.Has(hlo::kElementwise) || !user.called_computations().empty() || user.HasSideEffect()) return false;
    if (!user.shape().IsArray() || !user.shape().SameDimensions(value.shape())) return false;
    return std::all_of(user.operands().begin(), user.operands().end(), [&](const Instruction* operand) {
      return operand->shape().IsScalar() || operand->shape().SameDimensions(value.shape());
    });
  }

  // The dimension along which each device takes the part of its place in the group, and all of the others; else -1.
  int64_t OwnDimension(const Instruction& slice, const Instruction& value, const spmd::GroupPositions& positions) {
    if (slice.operand(0) != &value) return -1;
    const auto& sizes = slice.As<hlo::attr::DynamicSlice>().sizes;
    int64_t cut = -1;
    for (size_t d = 0; d < sizes.size(); ++d) {
      const auto dimension = static_cast<int64_t>(d);
      if (sizes[d] == value.shape().dimension(dimension)) continue;  // starts are clamped: all of it
      if (cut >= 0 || sizes[d] == 0 || sizes[d] * positions.group_size != value.shape().dimension(dimension)) return -1;
      cut = dimension;
    }
    if (cut < 0 || slice.operand_count() != 1 + static_cast<int64_t>(sizes.size())) return -1;
    const auto& starts = values_.Of(slice.operand(1 + cut));
    if (!starts) return -1;
    const int64_t size = sizes[static_cast<size_t>(cut)], last = value.shape().dimension(cut) - size;
    for (size_t device = 0; device < starts->size(); ++device) {
      if (std::clamp<int64_t>((*starts)[device], 0, last) != positions.of_device[device] * size) return -1;
    }
    return cut;
  }

  void Scatter(Instruction* all_reduce, const Kept& kept) {
    hlo::Builder build(computation_, all_reduce);
    hlo::attr::Collective attributes = all_reduce->As<hlo::attr::Collective>();
    attributes.dimension = kept.dimension;
    Instruction* part =
        build.Make(Opcode::kReduceScatter, {all_reduce->operand(kept.operand)}, attributes, {all_reduce->called()});
    std::unordered_map<const Instruction*, Instruction*> parts = {{kept.sum, part}};
    for (const Instruction* between : kept.between) {
      std::vector<Instruction*> operands;
      for (Instruction* operand : between->operands()) {
        const auto own = parts.find(operand);
        operands.push_back(own != parts.end() ? own->second : PartOf(operand, *kept.slices[0]));
      }
      const hlo::Shape shape(between->shape().element_type(), part->shape().dimensions());
      parts[between] = computation_->Add(between->CloneWithOperands(shape, std::move(operands)));
    }
    for (Instruction* slice : kept.slices) computation_->Replace(slice, parts.at(slice->operand(0)));
    for (auto between = kept.between.rbegin(); between != kept.between.rend(); ++between)
      computation_->Remove(*between);
  }

  // What `slice` takes of another array of the same dimensions.
  Instruction* PartOf(Instruction* whole, const Instruction& slice) {
    if (whole->shape().IsScalar()) return whole;
    hlo::Builder build(computation_, whole);
    const auto& sizes = slice.As<hlo::attr::DynamicSlice>().sizes;
    const hlo::Dims dimensions(sizes.begin(), sizes.end());
    if (whole->Is(Opcode::kBroadcast) && whole->operand(0)->shape().IsScalar()) {
      return build.Broadcast(whole->operand(0), dimensions, {});
    }
    return build.DynamicSlice(whole, {slice.operands().begin() + 1, slice.operands().end()}, dimensions);
  }

  // Nothing reads the sums of `scattered` any more: the all-reduce goes on without them, or goes.
  void RemoveOperands(Instruction* all_reduce, const std::vector<Kept>& scattered) {
    std::vector<Instruction*> operands;
    std::vector<std::pair<Instruction*, int64_t>> elements;  // and their new places
    for (int64_t i = 0; i < all_reduce->operand_count(); ++i) {
      if (std::any_of(scattered.begin(), scattered.end(), [&](const Kept& kept) { return kept.operand == i; }))
        continue;
      for (Instruction* user : all_reduce->users()) {
        if (user->tuple_index() == i) elements.emplace_back(user, static_cast<int64_t>(operands.size()));
      }
      operands.push_back(all_reduce->operand(i));
    }
    for (const Kept& kept : scattered) {
      if (kept.sum != all_reduce) computation_->Remove(kept.sum);
    }
    if (!elements.empty()) {
      hlo::Builder build(computation_, all_reduce);
      Instruction* rest = build.Make(Opcode::kAllReduce, operands, all_reduce->attributes(), {all_reduce->called()});
      for (const auto& [element, place] : elements) {
        computation_->Replace(element, operands.size() == 1 ? rest : build.GetTupleElement(rest, place));
      }
    }
    computation_->Remove(all_reduce);
  }

  Computation* computation_;
  spmd::DeviceValues& values_;
};

}  // namespace

bool ScatterReductions::Run(hlo::Module& module, PassContext&) {
  if (module.replica_count * module.num_partitions == 1) return false;
  bool changed = false;
  for (Computation* computation : module.ControlComputations()) {
    spmd::DeviceValues values;
    if (!Scatterer(computation, values).Run()) continue;
    computation->SetOrder(computation->PostOrder());
    changed = true;
  }
  return changed;
}

}  // namespace hlorun::passes
