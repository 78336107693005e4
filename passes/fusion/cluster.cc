#include "passes/fusion/cluster.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "hlo/cost_analysis.h"
#include "hlo/elementwise.h"
#include "hlo/module.h"
#include "passes/fusion/hero.h"
#include "passes/fusion/pooling.h"
#include "passes/fusion/pooling_gradient.h"
#include "passes/fusion/recompute.h"
#include "passes/fusion/stored_result.h"
#include "passes/fusion/updated_part.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// How a cluster reads an instruction: how many elements in total, and where each one is read only at the place of an
// element of another array of its dimensions, which array that is: the root, what a reduction or a pooling of the
// cluster reads, or the part that its update in place stores.
struct Demand {
  double evaluations = 0;
  const Instruction* place = nullptr;
};

bool HasHeroWithEpilogue(const Instruction& instruction) {
  return instruction.Is(Opcode::kDot) || instruction.Is(Opcode::kConvolution) ||
         ((instruction.Is(Opcode::kReduce) || IsPooling(instruction)) && instruction.shape().IsArray());
}

// A scalar constant, in an array's shape or not. A network's layers share these, whose turn comes after all of them.
bool IsOneNumber(const Instruction& instruction) {
  return IsScalarConstant(instruction) ||
         (instruction.Is(Opcode::kBroadcast) && IsScalarConstant(*instruction.operand(0)));
}

class ClusterFinder {
 public:
  ClusterFinder(hlo::Computation& computation, const KernelModel& kernels)
      : computation_(computation), kernels_(kernels), cost_(computation) {}

  std::vector<Cluster> Run() {
    std::vector<Instruction*> order = computation_.PostOrder();
    for (const Instruction* instruction : order) {
      places_[instruction] = static_cast<int64_t>(places_.size());
      if (UpdatesPart(*instruction)) updates_[instruction->operand(0)].push_back(instruction);
    }
    std::reverse(order.begin(), order.end());
    for (Instruction* instruction : order) {
      const std::optional<std::map<size_t, Demand>> demands = DemandsOn(instruction);
      if (!demands.has_value() || !TryInline(instruction, *demands)) Materialise(instruction);
    }
    for (Cluster& cluster : clusters_) PeelReinterpretations(cluster);
    return std::move(clusters_);
  }

 private:
  using Demands = std::map<size_t, Demand>;  // by cluster

  // What the clusters want of an instruction; nullopt when it must be in memory anyway.
  std::optional<Demands> DemandsOn(Instruction* instruction) const {
    if (instruction->IsRoot() || instruction->users().empty() || !instruction->shape().IsArray() ||
        !instruction->control_successors().empty() || !instruction->control_predecessors().empty()) {
      return std::nullopt;
    }
    Demands demands;
    for (const Instruction* user : instruction->users()) {
      const auto memberships = demands_.find(user);
      if (memberships == demands_.end()) return std::nullopt;
      for (const auto& [cluster, on_user] : memberships->second) {
        for (int64_t slot = 0; slot < user->operand_count(); ++slot) {
          if (user->operand(slot) != instruction) continue;
          const std::optional<Demand> here = Through(*user, slot, on_user);
          if (!here.has_value()) return std::nullopt;
          const auto [known, added] = demands.try_emplace(cluster, *here);
          if (added) continue;
          Demand& sum = known->second;
          // Elements read at one place are computed once.
          if (sum.place != nullptr && sum.place == here->place) {
            sum.evaluations = std::max(sum.evaluations, here->evaluations);
          } else {
            sum = {sum.evaluations + here->evaluations, nullptr};
          }
        }
      }
    }
    return demands;
  }

  // The demand on operand `slot` of a member; nullopt when the member takes that operand from memory only.
  static std::optional<Demand> Through(const Instruction& user, int64_t slot, const Demand& demand) {
    const hlo::Shape& operand = user.operand(slot)->shape();
    const auto elements = static_cast<double>(operand.ElementCount());
    const auto of_user = static_cast<double>(std::max<int64_t>(hlo::FlattenShape(user.shape())[0].ElementCount(), 1));
    switch (user.opcode()) {
      case Opcode::kReduce:
        if (slot * 2 >= user.operand_count()) return std::nullopt;  // initial values
        return Demand{elements * std::max(1.0, demand.evaluations / of_user), user.operand(0)};
      case Opcode::kReduceWindow:
        if (slot * 2 >= user.operand_count()) return std::nullopt;  // initial values
        return Demand{hlo::ElementsInWindows(user) * std::max(1.0, demand.evaluations / of_user), user.operand(0)};
      case Opcode::kSelectAndScatter:
        if (slot == 2) return std::nullopt;  // the initial value
        return Demand{hlo::ElementsInWindows(user), user.operand(slot)};
      case Opcode::kSort:  // once for its key, once where it ends
        return Demand{2 * elements};
      case Opcode::kDynamicUpdateSlice:
        if (slot == 0) return std::nullopt;
        return Demand{elements, slot == 1 ? user.operand(1) : nullptr};
      case Opcode::kConcatenate:
      case Opcode::kPad: return Demand{std::max(elements, elements * demand.evaluations / of_user)};
      default:
        if (!IsLoopOp(user)) return std::nullopt;
    }
    // What only rearranges its operand wants each element once, at a place of the operand's own.
    if (demand.place == &user && (user.Is(Opcode::kTranspose) || user.Is(Opcode::kReshape)))
      return Demand{demand.evaluations, user.operand(slot)};
    return Demand{demand.evaluations, ReadsSamePlace(user, *user.operand(slot)) ? demand.place : nullptr};
  }

  bool TryInline(Instruction* instruction, const Demands& demands) {
    const bool is_hero = HasHeroWithEpilogue(*instruction) && !kernels_.RunsAlone(*instruction);
    if (!is_hero && !IsLoopOp(*instruction) && !IsPoolingGradient(*instruction)) return false;
    if (ReadsBehindUpdate(*instruction, demands)) return false;
    if (IsPoolingGradient(*instruction)) return TryFinishGradient(instruction, demands);
    double evaluations = 0;
    for (const auto& [cluster, demand] : demands) {
      evaluations += demand.evaluations;
      if (!Fits(*instruction, clusters_[cluster], demand)) return false;
    }
    if (is_hero) {
      // An epilogue: the whole result, once.
      if (demands.size() != 1 || !IsAtRoot(demands.begin()->second, clusters_[demands.begin()->first])) return false;
      if (!MayBeHero(*instruction, clusters_[demands.begin()->first])) return false;
    } else if (!cost_.MayInline(*instruction, evaluations, demands.size()) && !IsFree(*instruction, demands)) {
      return false;
    }
    for (const auto& [cluster, demand] : demands) Join(instruction, clusters_[cluster]);
    demands_[instruction] = demands;
    if (is_hero) clusters_[demands.begin()->first].hero = instruction;
    return true;
  }

  bool TryFinishGradient(Instruction* gradient, const Demands& demands) {
    if (demands.size() != 1) return false;
    const auto& [number, demand] = *demands.begin();
    Cluster& cluster = clusters_[number];
    if (!Fits(*gradient, cluster, demand) || !MayFinishGradient(cluster, *gradient, demand.evaluations)) return false;
    Join(gradient, cluster);
    demands_[gradient] = demands;
    cluster.hero = gradient;
    return true;
  }

  // Whether windows alone read it, who had rather make it as often as they do.
  bool IsFree(const Instruction& instruction, const Demands& demands) const {
    return std::all_of(demands.begin(), demands.end(), [&](const auto& demand) {
      const Instruction* hero = clusters_[demand.first].hero;
      if (hero == nullptr || demand.second.place != hero->operand(0)) return false;
      return IsPooling(*hero) ? IsFreeInTaps(instruction, *hero)
                              : IsPoolingGradient(*hero) && FitsSelection(instruction, *hero);
    });
  }

  // Whether a cluster would read a part of an array only when an update in place, on which it depends, has overwritten
  // it: all of the array would have to be copied for that part. (What an entry is given is copied anyway, unless the
  // caller hands it over.)
  bool ReadsBehindUpdate(const Instruction& instruction, const Demands& demands) const {
    const hlo::Module& module = *computation_.module();
    const bool is_entry = &computation_ == module.entry() && module.input_output_alias.empty();
    for (const Instruction* array : instruction.operands()) {
      if (!array->shape().IsArray() || array->shape().ByteSize() < 2 * instruction.shape().ByteSize()) continue;
      const auto updates = updates_.find(array);
      if (updates == updates_.end() || (is_entry && array->Is(Opcode::kParameter))) continue;
      for (const Instruction* update : updates->second) {
        if (update == &instruction) continue;
        const auto is_later = [&](const auto& demand) { return DependsOn(clusters_[demand.first].roots[0], update); };
        if (std::any_of(demands.begin(), demands.end(), is_later)) return true;
      }
    }
    return false;
  }

  // Whether `later` is made, by any number of steps, of what `update` makes.
  bool DependsOn(const Instruction* later, const Instruction* update) const {
    const int64_t first = places_.at(update);
    std::vector<const Instruction*> work = {later};
    std::unordered_set<const Instruction*> seen = {later};
    while (!work.empty()) {
      const Instruction* at = work.back();
      work.pop_back();
      for (const Instruction* operand : at->operands()) {
        if (operand == update) return true;
        if (places_.at(operand) > first && seen.insert(operand).second) work.push_back(operand);
      }
    }
    return false;
  }

  static bool HasRoomFor(const Instruction& instruction, const Cluster& cluster) {
    size_t reads = cluster.reads.size() - 1;  // its own place
    for (const Instruction* operand : instruction.operands()) {
      if (!IsOneNumber(*operand) && !cluster.reads.contains(operand) && !cluster.is_member.contains(operand)) ++reads;
    }
    return OperationsIn(cluster.members) < kMaxClusterOperations && reads <= kMaxClusterReads;
  }

  static bool Fits(const Instruction& instruction, const Cluster& cluster, const Demand& demand) {
    // A kernel's size does not grow by a number.
    if (!IsOneNumber(instruction) && !HasRoomFor(instruction, cluster)) return false;
    const Instruction* root = cluster.roots[0];
    // What an update reads of the array that it updates must be read before, in a kernel of its own, unless each
    // element is read where it is stored.
    if (root->Is(Opcode::kDynamicUpdateSlice) && instruction.OperandIndex(root->operand(0)) >= 0 &&
        (demand.place != root->operand(1) || !SlicesUpdatedPart(instruction, *root))) {
      return false;
    }
    if (cluster.hero != nullptr && IsPoolingGradient(*cluster.hero)) {
      const bool is_selected = demand.place == cluster.hero->operand(0) || demand.place == cluster.hero->operand(1);
      return is_selected ? FitsSelection(instruction, *cluster.hero) : FitsGradientsLoop(instruction);
    }
    return cluster.hero == nullptr || cluster.hero->Is(Opcode::kReduce) ||
           FitsEpilogue(instruction, IsAtRoot(demand, cluster), cluster) ||
           (IsPooling(*cluster.hero) && FitsTaps(instruction, *cluster.hero));
  }

  // At the places at which a product's tiles have their values.
  static bool IsAtRoot(const Demand& demand, const Cluster& cluster) {
    return demand.place == StoredResultOf(*cluster.roots[0]).value;
  }

  // Tiles of products and convolutions are finished by elementwise ops, whose other operands are arrays of the result's
  // dimensions and broadcasts.
  static bool FitsEpilogue(const Instruction& instruction, bool at_root, const Cluster& cluster) {
    if (instruction.Is(Opcode::kBroadcast) || instruction.Is(Opcode::kIota)) {
      return std::none_of(instruction.users().begin(), instruction.users().end(), [&](const Instruction* user) {
        return cluster.is_member.contains(user) && IsReinterpretation(*user);
      });
    }
    return at_root && hlo::IsElementwise(instruction);
  }

  bool MayBeHero(const Instruction& hero, const Cluster& cluster) const {
    const Instruction* root = cluster.roots[0];
    const StoredResult stored = StoredResultOf(*root);
    const bool is_product = hero.Is(Opcode::kDot) || hero.Is(Opcode::kConvolution);
    const bool is_part = is_product && root->Is(Opcode::kDynamicUpdateSlice) && stored.IsOnTheWay(root);
    const bool may_finish = HeroOf(*root).kind == KernelKind::kLoop || RowsOfGroup(*root) > 0 || is_part;
    if (cluster.hero != nullptr || !may_finish) return false;
    if (!stored.value->shape().SameDimensions(hero.shape())) return false;
    if (!stored.way.empty() && !is_part && !hero.Is(Opcode::kDot)) return false;
    const size_t index = static_cast<size_t>(&cluster - clusters_.data());
    return std::all_of(cluster.members.begin(), cluster.members.end(), [&](const Instruction* member) {
      if (stored.IsOnTheWay(member)) return true;
      // Reshapes of arrays in memory will be peeled.
      if (IsReinterpretation(*member) && !cluster.is_member.contains(member->operand(0))) return true;
      return FitsEpilogue(*member, IsAtRoot(demands_.at(member).at(index), cluster), cluster);
    });
  }

  // Whether the product whose result, finished, `pooling` reads may reduce groups of rows as it does.
  bool MayReduceProduct(const Instruction& pooling) const {
    const int64_t rows = RowsOfGroup(pooling);
    if (rows == 0) return false;
    std::vector<const Instruction*> work = {pooling.operand(0)};
    std::unordered_set<const Instruction*> seen(work.begin(), work.end());
    while (!work.empty() && seen.size() < kMaxClusterOperations) {
      const Instruction* at = work.back();
      work.pop_back();
      if (at->Is(Opcode::kDot) && !kernels_.RunsAlone(*at)) return kernels_.RowsFinishedTogether(*at) == rows;
      for (const Instruction* operand : at->operands()) {
        if (ReadsSamePlace(*at, *operand) && seen.insert(operand).second) work.push_back(operand);
      }
    }
    return false;
  }

  static void Join(Instruction* instruction, Cluster& cluster) {
    cluster.members.push_back(instruction);
    cluster.is_member.insert(instruction);
    cluster.reads.erase(instruction);
    for (const Instruction* operand : instruction->operands()) {
      if (!IsOneNumber(*operand) && !cluster.is_member.contains(operand)) cluster.reads.insert(operand);
    }
  }

  // Starts a cluster, where instructions of this kind take producers in.
  void Materialise(Instruction* instruction) {
    const KernelKind kind = HeroOf(*instruction).kind;
    const bool takes_producers = kind == KernelKind::kReduction || kind == KernelKind::kInPlace ||
                                 kind == KernelKind::kSort || IsPooling(*instruction) ||
                                 kind == KernelKind::kSelectAndScatter ||
                                 (kind == KernelKind::kLoop && IsLoopOp(*instruction));
    if (instruction->Is(Opcode::kFusion) || !takes_producers || IsReinterpretation(*instruction)) return;
    const auto elements = static_cast<double>(hlo::FlattenShape(instruction->shape())[0].ElementCount());
    demands_[instruction] = {{clusters_.size(), Demand{elements, instruction}}};
    Cluster cluster;
    cluster.roots = {instruction};
    const bool is_pooling = IsPooling(*instruction) && !MayReduceProduct(*instruction);
    if (instruction->Is(Opcode::kReduce) || is_pooling || IsPoolingGradient(*instruction)) cluster.hero = instruction;
    Join(instruction, cluster);
    clusters_.push_back(std::move(cluster));
  }

  // Reshapes of what is in memory cost nothing outside of the kernel.
  static void PeelReinterpretations(Cluster& cluster) {
    for (size_t i = cluster.members.size(); i-- > 1;) {
      const Instruction* member = cluster.members[i];
      if (!IsReinterpretation(*member) || cluster.is_member.contains(member->operand(0))) continue;
      cluster.is_member.erase(member);
      cluster.members.erase(cluster.members.begin() + static_cast<int64_t>(i));
      cluster.reads.insert(member);
    }
  }

  hlo::Computation& computation_;
  const KernelModel& kernels_;
  const RecomputeCost cost_;
  std::vector<Cluster> clusters_;
  std::unordered_map<const Instruction*, Demands> demands_;  // of instructions that are in clusters
  std::unordered_map<const Instruction*, int64_t> places_;   // in an order of operands before users
  std::unordered_map<const Instruction*, std::vector<const Instruction*>> updates_;  // by what they update in part
};

}  // namespace

bool IsScalarConstant(const Instruction& instruction) {
  return instruction.IsConstant() && instruction.shape().IsArray() && instruction.shape().ElementCount() == 1;
}

size_t OperationsIn(const std::vector<Instruction*>& members) {
  return static_cast<size_t>(std::count_if(members.begin(), members.end(), [](const Instruction* member) {
    return IsScalarConstant(*member) || !IsOneNumber(*member);
  }));
}

bool Cluster::NeedsOutline() const {
  const auto& operands = roots[0]->operands();
  return members.size() > 1 ||
         std::any_of(operands.begin(), operands.end(), [](const Instruction* o) { return IsScalarConstant(*o); });
}

std::vector<Cluster> FindClusters(hlo::Computation& computation, const KernelModel& kernels) {
  return ClusterFinder(computation, kernels).Run();
}

}  // namespace hlorun::passes
