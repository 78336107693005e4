#include "passes/memory/region_cut.h"

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "hlo/callers.h"
#include "hlo/error.h"
#include "passes/fusion/hero.h"
#include "passes/memory/operand_cut.h"

namespace hlorun::passes {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

namespace {

constexpr int64_t kMostShares = 16;

}  // namespace

class RegionCutSearch {
 public:
  RegionCutSearch(const Instruction& region, const RegionLayout& layout, int64_t unit, int64_t wanted)
      : layout_(layout),
        entry_(*layout.module().entry()),
        unit_(unit),
        wanted_(wanted),
        callers_(hlo::CallersOf(layout.module())),
        aliases_(RegionAliases(region)) {
    for (const int64_t operand : aliases_) {
      if (operand >= 0) updated_.insert(entry_.parameter(operand));
    }
  }

  std::optional<RegionCut> Find() {
    if (HasNestedTuples()) return std::nullopt;
    const Instruction& root = *entry_.root();
    const auto leaves = hlo::FlattenShape(root.shape());
    if (leaves.empty() || !leaves[0].IsArray()) return std::nullopt;
    for (int64_t d = 0; d < leaves[0].rank(); ++d) {
      cut_ = {};
      parts_.clear();
      scratch_.clear();
      cut_.extent_ = leaves[0].dimension(d);
      cut_.shares_ = SharesOf(cut_.extent_);
      if (cut_.shares_ > 1 && CutResults(root, leaves, d) && EveryStepHasItsPlace(entry_) && UpdatesFit(root, leaves) &&
          ScratchIsUsedOnce()) {
        return cut_;
      }
    }
    return std::nullopt;
  }

 private:
  int64_t SharesOf(int64_t extent) const {
    const auto most =
        static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::clamp<int64_t>(wanted_, 1, kMostShares))));
    for (int64_t shares = most; shares > 1; shares /= 2) {
      if (extent % (shares * unit_) == 0) return shares;
    }
    return 1;
  }

  bool CutResults(const Instruction& root, const std::vector<Shape>& leaves, int64_t first) {
    if (!Need(&root, 0, first)) return false;
    for (size_t leaf = 1; leaf < leaves.size(); ++leaf) {
      const auto number = static_cast<int64_t>(leaf);
      if (cut_.dimensions_.contains({&root, number})) continue;
      const auto kept = cut_.dimensions_;
      bool found = false;
      for (int64_t d = 0; d < leaves[leaf].rank() && !found; ++d) {
        cut_.dimensions_ = kept;
        found = leaves[leaf].dimension(d) == cut_.extent_ && Need(&root, number, d);
      }
      if (!found) return false;
    }
    return true;
  }

  bool HasNestedTuples() const {
    for (const auto& computation : layout_.module().computations()) {
      for (const auto& instruction : computation->instructions()) {
        const auto& elements = instruction->shape().tuple_shapes();
        if (std::any_of(elements.begin(), elements.end(), [](const Shape& s) { return s.IsTuple(); })) return true;
      }
    }
    return false;
  }

  // An operand that a result updates in place is cut into the same parts as the result.
  bool UpdatesFit(const Instruction& root, const std::vector<Shape>& leaves) const {
    for (size_t leaf = 0; leaf < aliases_.size(); ++leaf) {
      if (aliases_[leaf] < 0) continue;
      const Instruction* operand = entry_.parameter(aliases_[leaf]);
      const int64_t mine = cut_.DimensionOf(&root, static_cast<int64_t>(leaf)), its = cut_.DimensionOf(operand);
      if (mine == kWhole || its == kWhole || Around(leaves[leaf], mine) != Around(operand->shape(), its)) return false;
    }
    return true;
  }

  // Notes that a share has, or reads, its part of a value along dimension `d` (kWhole: all of it), and what that asks
  // of the values it is made of. False where something is needed in two ways.
  bool Need(const Instruction* value, int64_t leaf, int64_t d) {
    if (value->IsConstant()) return true;
    const bool is_given = value->Is(Opcode::kParameter) && value->parent() == &entry_;
    if (is_given && !updated_.contains(value)) return true;  // what nobody writes may be read anywhere
    const auto [at, is_new] = cut_.dimensions_.try_emplace({value, leaf}, d);
    if (!is_new) return at->second == d;
    if (d != kWhole) {
      const Shape shape = hlo::FlattenShape(value->shape())[static_cast<size_t>(leaf)];
      if (d >= shape.rank() || shape.dimension(d) != cut_.extent_) return false;
    }
    return is_given || NeedSources(*value, leaf, d);
  }

  bool NeedSources(const Instruction& value, int64_t leaf, int64_t d) {
    switch (value.opcode()) {
      case Opcode::kParameter: return NeedArgument(value, leaf, d);
      case Opcode::kGetTupleElement: return Need(value.operand(0), value.tuple_index() + leaf, d);
      case Opcode::kTuple: return Need(value.operand(leaf), 0, d);
      case Opcode::kCall: return Need(value.called()->root(), leaf, d);
      case Opcode::kFusion: {
        const Instruction* root = value.called()->root();
        return root->Is(Opcode::kTuple) ? Need(root->operand(leaf), 0, d) : Need(root, leaf, d);
      }
      case Opcode::kWhile:
        return Need(value.operand(0), leaf, d) && Need(value.while_body()->root(), leaf, d) &&
               Need(value.while_condition()->root(), 0, kWhole);
      case Opcode::kConditional:
        return Need(value.operand(0), 0, kWhole) &&
               std::all_of(value.called_computations().begin(), value.called_computations().end(),
                           [&](const Computation* branch) { return Need(branch->root(), leaf, d); });
      case Opcode::kScatter:
        if (d != kWhole) return false;  // a share does not know which updates lie in its part
        break;
      default: break;
    }
    const std::optional<std::vector<int64_t>> cuts = OperandCuts(value, leaf, d);
    for (int64_t i = 0; cuts && i < value.operand_count(); ++i) {
      if (!Need(value.operand(i), 0, (*cuts)[static_cast<size_t>(i)])) return false;
    }
    return cuts.has_value();
  }

  bool NeedArgument(const Instruction& parameter, int64_t leaf, int64_t d) {
    const Instruction& caller = *callers_.at(parameter.parent());
    if (caller.Is(Opcode::kWhile)) return Need(&caller, leaf, d);
    if (!caller.Is(Opcode::kConditional)) return Need(caller.operand(parameter.parameter_number()), leaf, d);
    const auto& branches = caller.called_computations();
    const auto branch = std::find(branches.begin(), branches.end(), parameter.parent()) - branches.begin();
    return Need(caller.operand(1 + branch), leaf, d);
  }

  // Whether all that is stored is either a share's own part of an array, or lies in a share's own memory.
  bool EveryStepHasItsPlace(const Computation& computation) {
    for (const auto& owned : computation.instructions()) {
      const Instruction& step = *owned;
      if (step.Is(Opcode::kWhile) || step.Is(Opcode::kConditional) || step.Is(Opcode::kCall)) {
        for (const Computation* called : step.called_computations()) {
          if (!EveryStepHasItsPlace(*called)) return false;
        }
        continue;
      }
      const bool is_given = step.Is(Opcode::kParameter) && updated_.contains(&step);
      const bool stores = step.Is(Opcode::kCopy) || HeroOf(step).kind != KernelKind::kNone;
      if (!stores && !is_given) continue;
      const std::vector<Shape> leaves = hlo::FlattenShape(step.shape());
      for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
        if (!HasItsPlace(step, static_cast<int64_t>(leaf), leaves[leaf])) return false;
      }
    }
    return true;
  }

  bool HasItsPlace(const Instruction& step, int64_t leaf, const Shape& shape) {
    const auto found = cut_.dimensions_.find({&step, leaf});
    if (found == cut_.dimensions_.end()) return false;
    const RegionPlace place = layout_.PlaceOf(&step, leaf);
    if (place.kind == RegionPlace::Kind::kPrivate || place.kind == RegionPlace::Kind::kNowhere) return true;
    if (found->second == kWhole) return false;
    if (place.kind == RegionPlace::Kind::kScratch) scratch_[{place.offset, place.index}] = place.bytes;
    const auto around = Around(shape, found->second);
    return parts_.try_emplace({place.kind, place.index}, around).first->second == around;
  }

  // Memory that is used again would be so by one share while another one still needs it.
  bool ScratchIsUsedOnce() const {
    int64_t end = 0;
    for (const auto& [place, bytes] : scratch_) {
      if (place.first < end) return false;
      end = place.first + bytes;
    }
    return true;
  }

  const RegionLayout& layout_;
  const Computation& entry_;
  const int64_t unit_, wanted_;
  const hlo::Callers callers_;
  const std::vector<int64_t> aliases_;
  std::unordered_set<const Instruction*> updated_;  // parameters whose memory may be a result's
  RegionCut cut_;
  std::map<std::pair<RegionPlace::Kind, int64_t>, std::pair<int64_t, int64_t>> parts_;
  std::map<std::pair<int64_t, int64_t>, int64_t> scratch_;  // bytes by offset and place
};

std::optional<RegionCut> RegionCut::Of(const Instruction& region, const RegionLayout& layout, int64_t unit,
                                       int64_t wanted) {
  return RegionCutSearch(region, layout, unit, wanted).Find();
}

int64_t RegionCut::DimensionOf(const Instruction* instruction, int64_t leaf) const {
  const auto found = dimensions_.find({instruction, leaf});
  return found == dimensions_.end() ? kWhole : found->second;
}

}  // namespace hlorun::passes
