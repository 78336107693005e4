#include "passes/spmd/auto_shard_templates.h"

#include <algorithm>
#include <numeric>

#include "passes/spmd/mesh_sharding.h"

namespace hlorun::passes::spmd {
namespace {

using hlo::Instruction;
using hlo::Opcode;

constexpr size_t kOtherGroups = 3;           // groups with much work that are tried alone
constexpr int64_t kSmallestCutBytes = 4096;  // of a parameter that "fully sharded" cuts

// No part is all padding.
bool FillsParts(int64_t size, int64_t parts) { return size > 0 && (parts - 1) * ((size + parts - 1) / parts) < size; }

class Templates {
 public:
  Templates(const DimensionGroups& groups, int64_t devices)
      : groups_(groups.groups()), data_(groups.data_group()), devices_(devices) {}

  std::vector<ShardingPlan> All() {
    plans_.push_back({"replicated", {}, {}, -1});
    AddPure();
    for (int64_t outer = 2; outer <= devices_ / 2; ++outer) {
      if (devices_ % outer == 0) AddProducts(outer, devices_ / outer);
    }
    return std::move(plans_);
  }

 private:
  const DimensionGroup& Group(int id) const { return groups_[static_cast<size_t>(id)]; }

  void AddPure() {
    const std::vector<int64_t> mesh = {devices_};
    if (CanCut(data_, devices_)) {
      plans_.push_back({"data-parallel", mesh, {{data_, 0}}, -1});
      plans_.push_back({"fully sharded", mesh, {{data_, 0}}, 0});
    }
    const std::vector<int> features = Features(devices_);
    if (!features.empty()) plans_.push_back({"tensor-parallel", mesh, Cuts(features, 0), -1});
    std::vector<int> tried = {data_};
    for (const int group : Activations(devices_)) {
      plans_.push_back({"sequence-parallel", mesh, {{group, 0}}, -1});
      tried.push_back(group);
    }
    size_t others = 0;
    for (const int group : ByWork()) {
      if (others == kOtherGroups) break;
      if (std::find(tried.begin(), tried.end(), group) != tried.end() || !CanCut(group, devices_)) continue;
      plans_.push_back({"one dimension", mesh, {{group, 0}}, -1});
      ++others;
    }
    plans_.push_back({"weights in parts", mesh, {}, 0});
  }

  void AddProducts(int64_t outer, int64_t inner) {
    if (!CanCut(data_, outer)) return;
    const std::vector<int64_t> mesh = {outer, inner};
    if (const std::vector<int> features = Features(inner); !features.empty()) {
      std::vector<std::pair<int, int>> cuts = Cuts(features, 1);
      cuts.insert(cuts.begin(), {data_, 0});
      plans_.push_back({"data-parallel x tensor-parallel", mesh, cuts, -1});
      plans_.push_back({"fully sharded x tensor-parallel", mesh, cuts, 0});
    }
    for (const int group : Activations(inner)) {
      plans_.push_back({"data-parallel x sequence-parallel", mesh, {{data_, 0}, {group, 1}}, -1});
    }
  }

  bool CanCut(int group, int64_t parts) const { return group >= 0 && FillsParts(Group(group).smallest, parts); }

  static std::vector<std::pair<int, int>> Cuts(const std::vector<int>& groups, int axis) {
    std::vector<std::pair<int, int>> cuts;
    for (const int group : groups) cuts.push_back({group, axis});
    return cuts;
  }

  std::vector<int> ByWork() const {
    std::vector<int> order(groups_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return Group(a).work > Group(b).work; });
    std::erase_if(order, [&](int g) { return Group(g).work <= 0; });
    return order;
  }

  // Activation dimensions beside the batch: the one with most work.
  std::vector<int> Activations(int64_t parts) const {
    int best = -1;
    for (const int group : ByWork()) {
      const bool is_activation = Group(group).activation_work > Group(group).feature_work;
      if (group == data_ || !is_activation || Group(group).common % parts != 0) continue;
      if (best < 0 || Group(group).activation_work > Group(best).activation_work) best = group;
    }
    return best < 0 ? std::vector<int>{} : std::vector<int>{best};
  }

  // A dimension for each weight: first those between two products, which cost one exchange for both.
  std::vector<int> Features(int64_t parts) const {
    std::vector<int> order;
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].feature_work > groups_[g].activation_work && groups_[g].common % parts == 0)
        order.push_back(static_cast<int>(g));
    }
    const auto rank = [&](int g) {
      const DimensionGroup& group = Group(g);
      return std::pair(!(group.enters_weight && group.leaves_weight), group.weights.size());
    };
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return rank(a) < rank(b); });
    std::set<int64_t> cut;
    std::vector<int> chosen;
    for (const int group : order) {
      const std::set<int64_t>& weights = Group(group).weights;
      if (std::any_of(weights.begin(), weights.end(), [&](int64_t w) { return cut.contains(w); })) continue;
      cut.insert(weights.begin(), weights.end());
      chosen.push_back(group);
    }
    return chosen;
  }

  const std::vector<DimensionGroup>& groups_;
  const int data_;
  const int64_t devices_;
  std::vector<ShardingPlan> plans_;
};

class Annotator {
 public:
  Annotator(const hlo::Module& module, const DimensionGroups& groups, const ShardingPlan& plan)
      : module_(module), groups_(groups), plan_(plan), mesh_(plan.mesh), copy_(module.Clone()) {}

  std::unique_ptr<hlo::Module> Run() {
    copy_->num_partitions = mesh_.device_count();
    copy_->allow_spmd_sharding_propagation_to_parameters.clear();
    copy_->allow_spmd_sharding_propagation_to_output.clear();
    for (int64_t p = 0; p < module_.entry()->parameter_count(); ++p) AnnotateParameter(p);
    AnnotateAliases();
    if (plan_.weight_axis >= 0 || HasGroupWithoutParameter()) AnnotateProducts();
    return std::move(copy_);
  }

 private:
  bool HasGroupWithoutParameter() const {
    return std::any_of(plan_.cuts.begin(), plan_.cuts.end(), [&](const auto& cut) {
      return groups_.groups()[static_cast<size_t>(cut.first)].parameters.empty();
    });
  }

  MeshSharding CutsOf(const Instruction& value, int64_t leaf, const hlo::Shape& shape) const {
    MeshSharding sharding = MeshSharding::Replicated(shape.rank());
    for (int64_t d = 0; d < shape.rank(); ++d) {
      const int group = groups_.GroupOf(value, leaf, d);
      for (const auto& [cut, axis] : plan_.cuts) {
        const int64_t parts = mesh_.SizeOf(axis);
        if (cut == group && !sharding.Uses(axis) && FillsParts(shape.dimension(d), parts)) {
          sharding.dims[static_cast<size_t>(d)].push_back(axis);
        }
      }
    }
    return sharding;
  }

  // The parameter's longest dimension that the weight axis divides.
  void CutWeight(const hlo::Shape& shape, MeshSharding& sharding) const {
    if (plan_.weight_axis < 0 || sharding.Uses(plan_.weight_axis) || shape.ByteSize() < kSmallestCutBytes) return;
    int64_t best = -1;
    for (int64_t d = 0; d < shape.rank(); ++d) {
      const bool fits = sharding.dims[static_cast<size_t>(d)].empty() && !shape.is_dynamic_dimension(d) &&
                        shape.dimension(d) % mesh_.SizeOf(plan_.weight_axis) == 0;
      if (fits && (best < 0 || shape.dimension(d) > shape.dimension(best))) best = d;
    }
    if (best >= 0) sharding.dims[static_cast<size_t>(best)].push_back(plan_.weight_axis);
  }

  void AnnotateParameter(int64_t number) {
    const Instruction& parameter = *module_.entry()->parameter(number);
    const std::vector<hlo::Shape> leaves = hlo::FlattenShape(parameter.shape());
    hlo::Sharding tuple;
    tuple.kind = hlo::Sharding::Kind::kTuple;
    for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
      MeshSharding sharding = MeshSharding::Replicated(leaves[leaf].IsArray() ? leaves[leaf].rank() : 0);
      if (leaves[leaf].IsArray()) {
        sharding = CutsOf(parameter, static_cast<int64_t>(leaf), leaves[leaf]);
        CutWeight(leaves[leaf], sharding);
      }
      tuple.elements.push_back(ToHloSharding(mesh_, sharding));
    }
    Instruction* copy = copy_->entry()->parameter(number);
    copy->sharding = parameter.shape().IsTuple() ? tuple : tuple.elements.front();
  }

  // A result that takes over a parameter's memory lies as it does.
  void AnnotateAliases() {
    Instruction* root = copy_->entry()->root();
    if (copy_->input_output_alias.empty() || !root->shape().IsTuple()) return;
    hlo::Sharding tuple;
    tuple.kind = hlo::Sharding::Kind::kTuple;
    hlo::Sharding unknown;
    unknown.kind = hlo::Sharding::Kind::kUnknown;
    tuple.elements.assign(static_cast<size_t>(hlo::LeafCount(root->shape())), unknown);
    for (const hlo::AliasEntry& alias : copy_->input_output_alias) {
      const Instruction* parameter = copy_->entry()->parameter(alias.parameter);
      if (!alias.parameter_index.empty() || parameter->shape().IsTuple() || alias.output.size() != 1) continue;
      if (root->shape().tuple_shape(alias.output[0]).IsTuple()) continue;
      int64_t leaf = 0;
      for (int64_t i = 0; i < alias.output[0]; ++i) leaf += hlo::LeafCount(root->shape().tuple_shape(i));
      tuple.elements[static_cast<size_t>(leaf)] = *parameter->sharding;
    }
    root->sharding = tuple;
  }

  // Says where activations lie, so that weights' shardings do not spread into them.
  void AnnotateProducts() {
    std::unordered_map<std::string, Instruction*> by_name;
    for (const auto& computation : copy_->computations()) {
      for (const auto& instruction : computation->instructions()) by_name[instruction->name()] = instruction.get();
    }
    for (const hlo::Computation* computation : module_.ControlComputations()) {
      for (const auto& instruction : computation->instructions()) {
        if (!instruction->Is(Opcode::kDot) && !instruction->Is(Opcode::kConvolution)) continue;
        const MeshSharding sharding = CutsOf(*instruction, 0, instruction->shape());
        if (!sharding.IsReplicated()) by_name.at(instruction->name())->sharding = ToHloSharding(mesh_, sharding);
      }
    }
  }

  const hlo::Module& module_;
  const DimensionGroups& groups_;
  const ShardingPlan& plan_;
  const Mesh mesh_;
  std::unique_ptr<hlo::Module> copy_;
};

}  // namespace

std::vector<ShardingPlan> ShardingPlans(const DimensionGroups& groups, int64_t devices) {
  return Templates(groups, devices).All();
}

std::unique_ptr<hlo::Module> Annotate(const hlo::Module& module, const DimensionGroups& groups,
                                      const ShardingPlan& plan) {
  if (plan.mesh.empty()) return module.Clone();
  return Annotator(module, groups, plan).Run();
}

}  // namespace hlorun::passes::spmd
