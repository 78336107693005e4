#include "passes/spmd/auto_shard_groups.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "passes/spmd/auto_shard_cost.h"
#include "passes/spmd/factor_rule.h"
#include "passes/spmd/leaf_nodes.h"
#include "passes/spmd/scan_parts.h"

namespace hlorun::passes::spmd {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Union-find over the dimensions of leaves; leaves that tuples and loops hand on are one node.
class GroupBuilder {
 public:
  GroupBuilder(const hlo::Module& module, DimensionGroups& result) : module_(module), result_(result) {}

  void Build() {
    Visit(*module_.entry());
    Number();
    Weigh({});
    FindDataGroup();
    if (result_.data_group_ < 0) return;
    // Inputs look like weights where they are multiplied (a first layer's gradient): now they are known.
    const std::set<int64_t> inputs = result_.groups_[static_cast<size_t>(result_.data_group_)].parameters;
    Weigh(inputs);
    FindDataGroup();
  }

 private:
  struct Node {
    hlo::Shape shape;
    int first = 0;           // its dimensions are [first, first + rank)
    int64_t parameter = -1;  // leaf of the entry's parameters that it is, up to its layout, type or a slice
  };
  struct Product {
    const Instruction* instruction;
    FactorRule rule;
    std::vector<int> operands, results;
    double seconds, repeats;
  };

  int NewNode(const hlo::Shape& shape) {
    if (!shape.IsArray()) return -1;
    nodes_.push_back({shape, static_cast<int>(parent_.size()), -1});
    for (int64_t d = 0; d < shape.rank(); ++d) {
      parent_.push_back(static_cast<int>(parent_.size()));
      size_.push_back(shape.is_dynamic_dimension(d) ? 1 : shape.dimension(d));
    }
    return static_cast<int>(nodes_.size()) - 1;
  }

  std::vector<int> NewNodes(const hlo::Shape& shape) {
    std::vector<int> ids;
    for (const hlo::Shape& leaf : hlo::FlattenShape(shape)) ids.push_back(NewNode(leaf));
    return ids;
  }

  int Find(int dimension) {
    while (parent_[static_cast<size_t>(dimension)] != dimension) {
      int& up = parent_[static_cast<size_t>(dimension)];
      up = parent_[static_cast<size_t>(up)];
      dimension = up;
    }
    return dimension;
  }

  int DimensionOf(int node, int64_t d) const { return nodes_[static_cast<size_t>(node)].first + static_cast<int>(d); }

  void Union(int a, int b) {
    if (size_[static_cast<size_t>(a)] <= 1 || size_[static_cast<size_t>(b)] <= 1) return;
    a = Find(a);
    b = Find(b);
    parent_[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
  }

  void Link(const std::vector<int>& a, const std::vector<int>& b) {
    for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
      if (a[i] < 0 || b[i] < 0) continue;
      const hlo::Shape& shape = nodes_[static_cast<size_t>(a[i])].shape;
      if (!shape.SameDimensions(nodes_[static_cast<size_t>(b[i])].shape)) continue;
      for (int64_t d = 0; d < shape.rank(); ++d) Union(DimensionOf(a[i], d), DimensionOf(b[i], d));
    }
  }

  void Visit(const Computation& computation) {
    for (const Instruction* instruction : computation.PostOrder()) {
      node_of_[instruction] = NodesOf(*instruction);
      if (instruction->Has(hlo::kControl)) VisitCallees(*instruction);
      if (instruction->Is(Opcode::kScan)) VisitStep(*instruction);
    }
  }

  std::vector<int> NodesOf(const Instruction& instruction) {
    if (const auto ids = NodesHandedOn(node_of_, instruction)) return *ids;
    return instruction.Is(Opcode::kParameter) ? ParameterNodes(instruction) : OpNodes(instruction);
  }

  std::vector<int> ParameterNodes(const Instruction& parameter) {
    const auto known = node_of_.find(&parameter);
    if (known != node_of_.end()) return known->second;
    std::vector<int> ids = NewNodes(parameter.shape());
    if (parameter.parent() != module_.entry()) return ids;
    for (const int id : ids) {
      if (id >= 0) nodes_[static_cast<size_t>(id)].parameter = parameter_leaves_;
      ++parameter_leaves_;
    }
    return ids;
  }

  std::vector<int> OpNodes(const Instruction& instruction) {
    std::vector<int> ids = NewNodes(instruction.shape());
    if (instruction.Has(hlo::kControl)) return ids;
    const FactorRule rule = FactorRuleOf(instruction);
    const std::vector<int> operands = OperandNodes(node_of_, instruction);
    if (!rule.is_known || operands.size() != rule.operands.size() || ids.size() != rule.results.size()) return ids;
    std::vector<int> dimension_of(rule.factors.size(), -1);
    const auto join = [&](const std::vector<int>& nodes, const std::vector<FactorRule::Tensor>& tensors) {
      for (size_t i = 0; i < nodes.size(); ++i) {
        for (size_t d = 0; nodes[i] >= 0 && d < tensors[i].size(); ++d) {
          if (tensors[i][d].empty()) continue;
          const auto factor = static_cast<size_t>(tensors[i][d].front());
          if (rule.factors[factor].kind == FactorKind::kBlocked) continue;
          const int dimension = DimensionOf(nodes[i], static_cast<int64_t>(d));
          if (dimension_of[factor] < 0) dimension_of[factor] = dimension;
          Union(dimension_of[factor], dimension);
        }
      }
    };
    join(operands, rule.operands);
    join(ids, rule.results);
    HandOnParameter(instruction, operands, ids);
    products_.push_back({&instruction, rule, operands, ids, SecondsOf(instruction, DeviceSpec{}), repeats_});
    return ids;
  }

  // Ops after which a weight is still a weight.
  void HandOnParameter(const Instruction& instruction, const std::vector<int>& operands, const std::vector<int>& ids) {
    const bool hands_on =
        (instruction.Has(hlo::kElementwise) && operands.size() == 1) || instruction.Is(Opcode::kReshape) ||
        instruction.Is(Opcode::kTranspose) || instruction.Is(Opcode::kSlice) || instruction.Is(Opcode::kDynamicSlice) ||
        instruction.Is(Opcode::kCopy) || instruction.Is(Opcode::kBroadcast) || instruction.Is(Opcode::kReverse);
    if (!hands_on || operands.empty() || operands[0] < 0 || ids.size() != 1) return;
    nodes_[static_cast<size_t>(ids[0])].parameter = nodes_[static_cast<size_t>(operands[0])].parameter;
  }

  void VisitCallees(const Instruction& instruction) {
    const std::vector<int> ids = node_of_.at(&instruction);
    const double outside = repeats_;
    if (instruction.Is(Opcode::kWhile)) {
      const std::vector<int>& initial = node_of_.at(instruction.operand(0));
      node_of_[instruction.while_condition()->parameter(0)] = ids;
      node_of_[instruction.while_body()->parameter(0)] = ids;
      Link(initial, ids);
      for (size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] >= 0 && initial[i] >= 0 && Carries(instruction, i)) {
          nodes_[static_cast<size_t>(ids[i])].parameter = nodes_[static_cast<size_t>(initial[i])].parameter;
        }
      }
      repeats_ *= static_cast<double>(TripsOf(instruction));
    }
    const bool is_conditional = instruction.Is(Opcode::kConditional);
    for (size_t i = 0; i < instruction.called_computations().size(); ++i) {
      const Computation& callee = *instruction.called(static_cast<int64_t>(i));
      for (int64_t p = 0; !instruction.Is(Opcode::kWhile) && p < callee.parameter_count(); ++p) {
        node_of_[callee.parameter(p)] =
            node_of_.at(instruction.operand(is_conditional ? static_cast<int64_t>(i) + 1 : p));
      }
      Visit(callee);
      if (instruction.Is(Opcode::kWhile) && &callee == instruction.while_condition()) continue;
      Link(node_of_.at(callee.root()), ids);
    }
    repeats_ = outside;
  }

  // Dimensions of a slice are those of the whole, without the one along which it is taken.
  void LinkSlice(int whole, int slice, int64_t dimension) {
    const int64_t rank = nodes_[static_cast<size_t>(whole)].shape.rank();
    for (int64_t d = 0; d < rank; ++d) {
      if (d != dimension) Union(DimensionOf(whole, d), DimensionOf(slice, d < dimension ? d : d - 1));
    }
  }

  void VisitStep(const Instruction& scan) {
    const ScanParts parts(scan);
    const std::vector<int> ids = node_of_.at(&scan);
    const Computation& step = *scan.called();
    auto carried = ids.begin() + parts.outputs;
    for (int64_t p = 0; p < step.parameter_count(); ++p) {
      const std::vector<int>& operand = node_of_.at(scan.operand(p));
      if (p < parts.inputs) {
        const std::vector<int> slice = NewNodes(step.parameter(p)->shape());
        node_of_[step.parameter(p)] = slice;
        LinkSlice(operand[0], slice[0], parts.dimension);
      } else {
        const std::vector<int> around(carried, carried + static_cast<std::ptrdiff_t>(operand.size()));
        node_of_[step.parameter(p)] = around;
        Link(operand, around);
        carried += static_cast<std::ptrdiff_t>(operand.size());
      }
    }
    const double outside = std::exchange(repeats_, repeats_ * static_cast<double>(parts.steps));
    Visit(step);
    repeats_ = outside;
    const std::vector<int>& results = node_of_.at(step.root());
    for (size_t i = 0; i < static_cast<size_t>(parts.outputs); ++i) LinkSlice(ids[i], results[i], parts.dimension);
    Link({results.begin() + parts.outputs, results.end()}, {ids.begin() + parts.outputs, ids.end()});
  }

  // Whether a loop hands leaf `leaf` of what it carries on unchanged.
  static bool Carries(const Instruction& loop, size_t leaf) {
    const Instruction* root = loop.while_body()->root();
    if (!root->Is(Opcode::kTuple) || leaf >= static_cast<size_t>(root->operand_count())) return false;
    const Instruction* value = root->operand(static_cast<int64_t>(leaf));
    return value->Is(Opcode::kGetTupleElement) && value->operand(0) == loop.while_body()->parameter(0) &&
           value->tuple_index() == static_cast<int64_t>(leaf);
  }

  void Number() {
    std::unordered_map<int, int> number;
    for (const auto& [instruction, ids] : node_of_) {
      auto& leaves = result_.group_of_[instruction];
      for (const int id : ids) {
        std::vector<int>& dimensions = leaves.emplace_back();
        for (int64_t d = 0; id >= 0 && d < nodes_[static_cast<size_t>(id)].shape.rank(); ++d)
          dimensions.push_back(DimensionOf(id, d));
      }
    }
    // Groups are numbered by their first dimension: the same in every run.
    for (size_t d = 0; d < parent_.size(); ++d) {
      if (size_[d] <= 1) continue;
      const auto [at, is_new] = number.emplace(Find(static_cast<int>(d)), static_cast<int>(number.size()));
      if (is_new) result_.groups_.emplace_back();
      DimensionGroup& group = result_.groups_[static_cast<size_t>(at->second)];
      group.smallest = group.smallest == 0 ? size_[d] : std::min(group.smallest, size_[d]);
      group.common = std::gcd(group.common, size_[d]);
      group_of_dimension_.resize(d + 1, -1);
      group_of_dimension_[d] = at->second;
    }
    group_of_dimension_.resize(parent_.size(), -1);
    for (auto& [instruction, leaves] : result_.group_of_) {
      for (std::vector<int>& dimensions : leaves) {
        for (int& d : dimensions) d = group_of_dimension_[static_cast<size_t>(d)];
      }
    }
    for (const Node& node : nodes_) {
      if (node.parameter < 0) continue;
      for (const int group : GroupsOf(node))
        result_.groups_[static_cast<size_t>(group)].parameters.insert(node.parameter);
    }
  }

  std::set<int> GroupsOf(const Node& node) const {
    std::set<int> groups;
    for (int64_t d = 0; d < node.shape.rank(); ++d) {
      const int group = group_of_dimension_[static_cast<size_t>(node.first + d)];
      if (group >= 0) groups.insert(group);
    }
    return groups;
  }

  std::set<int> GroupsOf(int node) const {
    return node < 0 ? std::set<int>{} : GroupsOf(nodes_[static_cast<size_t>(node)]);
  }

  // `inputs` are parameters that are no weights.
  void Weigh(const std::set<int64_t>& inputs) {
    for (DimensionGroup& group : result_.groups_) {
      group.work = group.activation_work = group.feature_work = 0;
      group.leaves_weight = group.enters_weight = false;
      group.weights.clear();
    }
    for (const Product& product : products_) {
      std::set<int> all;
      for (const int node : product.operands) all.merge(GroupsOf(node));
      for (const int node : product.results) all.merge(GroupsOf(node));
      for (const int group : all) result_.groups_[static_cast<size_t>(group)].work += product.seconds * product.repeats;
      if (product.instruction->Is(Opcode::kDot) || product.instruction->Is(Opcode::kConvolution))
        WeighProduct(product, inputs);
    }
  }

  void WeighProduct(const Product& product, const std::set<int64_t>& inputs) {
    const auto weight_of = [&](size_t i) {
      const int64_t parameter = nodes_[static_cast<size_t>(product.operands[i])].parameter;
      return inputs.contains(parameter) ? int64_t{-1} : parameter;
    };
    const int64_t left = weight_of(0), right = weight_of(1);
    if ((left < 0) == (right < 0)) return;
    const size_t weight = left >= 0 ? 0 : 1;
    const std::set<int> weight_groups = GroupsOf(product.operands[weight]);
    const std::set<int> other_groups = GroupsOf(product.operands[1 - weight]);
    const std::set<int> result_groups = GroupsOf(product.results[0]);
    const double work = product.seconds * product.repeats;
    for (const int id : weight_groups) {
      DimensionGroup& group = result_.groups_[static_cast<size_t>(id)];
      group.feature_work += work;
      group.weights.insert(std::max(left, right));
      group.leaves_weight |= result_groups.contains(id) && !other_groups.contains(id);
      group.enters_weight |= other_groups.contains(id);
    }
    for (const int id : other_groups) {
      if (!weight_groups.contains(id)) result_.groups_[static_cast<size_t>(id)].activation_work += work;
    }
  }

  void FindDataGroup() {
    double best = 0;
    result_.data_group_ = -1;
    for (size_t g = 0; g < result_.groups_.size(); ++g) {
      const DimensionGroup& group = result_.groups_[g];
      const double value = group.activation_work - group.feature_work;
      // The first of equals: a batch comes before positions.
      if (value > best * (1 + 1e-6)) {
        best = value;
        result_.data_group_ = static_cast<int>(g);
      }
    }
  }

  const hlo::Module& module_;
  DimensionGroups& result_;
  std::vector<Node> nodes_;
  std::vector<int> parent_;    // by dimension
  std::vector<int64_t> size_;  // by dimension
  std::vector<int> group_of_dimension_;
  LeafNodes node_of_;
  std::vector<Product> products_;
  int64_t parameter_leaves_ = 0;
  double repeats_ = 1;
};

DimensionGroups::DimensionGroups(const hlo::Module& module) { GroupBuilder(module, *this).Build(); }

int DimensionGroups::GroupOf(const Instruction& instruction, int64_t leaf, int64_t dimension) const {
  const auto at = group_of_.find(&instruction);
  if (at == group_of_.end()) return -1;
  return at->second[static_cast<size_t>(leaf)][static_cast<size_t>(dimension)];
}

}  // namespace hlorun::passes::spmd
