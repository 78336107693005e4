#include "passes/spmd/propagation.h"

#include <algorithm>
#include <set>

#include "hlo/error.h"
#include "passes/spmd/assignment.h"
#include "passes/spmd/leaf_nodes.h"
#include "passes/spmd/scan_parts.h"

namespace hlorun::passes::spmd {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// One array value: a leaf of an instruction, shared by the tuples that carry it.
struct Node {
  hlo::Shape shape;
  MeshSharding sharding;
  std::vector<bool> open;
  int priority = 0;
  bool annotated = false;
  const Instruction* annotated_by = nullptr;
};

struct Op {
  FactorRule rule;
  std::vector<int> operands, results;  // nodes; -1 for what is no array
  int level = 0;
};

int LevelOf(const Instruction& instruction) {
  if (instruction.Has(hlo::kElementwise)) return 0;
  switch (instruction.opcode()) {
    case Opcode::kTranspose:
    case Opcode::kReshape:
    case Opcode::kReverse:
    case Opcode::kCustomCall:
    case Opcode::kClamp:
    case Opcode::kMap: return 0;
    case Opcode::kDot:
    case Opcode::kConvolution: return 2;
    default: return 1;
  }
}

class Propagator {
 public:
  Propagator(const hlo::Module& module, const ModuleAnnotations& annotations)
      : module_(module), annotations_(annotations), mesh_(annotations.mesh) {}

  PropagationResult Run() {
    Visit(*module_.entry());
    AnnotateOutputs();
    CloseFixedParameters();
    while (SpreadManual()) {
    }
    for (const int priority : Priorities()) {
      priority_ = priority;
      for (int level = 0; level < 3; ++level) Fixpoint(level);
    }
    return Collect();
  }

 private:
  struct ManualFlow {
    const Instruction* instruction;
    std::vector<int> from, to;
  };

  std::vector<int> NewNodes(const Instruction& instruction) {
    std::vector<int> ids;
    for (const hlo::Shape& leaf : hlo::FlattenShape(instruction.shape())) {
      Node node;
      node.shape = leaf;
      node.sharding = MeshSharding::Replicated(leaf.rank());
      node.open.assign(static_cast<size_t>(leaf.rank()), true);
      for (int64_t d = 0; d < leaf.rank(); ++d) {
        if (leaf.is_dynamic_dimension(d)) node.open[static_cast<size_t>(d)] = false;
      }
      ids.push_back(leaf.IsArray() ? static_cast<int>(nodes_.size()) : -1);
      if (leaf.IsArray()) nodes_.push_back(std::move(node));
    }
    return ids;
  }

  void Annotate(const Instruction& instruction, const std::vector<int>& ids) {
    const auto it = annotations_.values.find(&instruction);
    if (it == annotations_.values.end()) return;
    for (size_t leaf = 0; leaf < ids.size() && leaf < it->second.size(); ++leaf) {
      if (ids[leaf] < 0 || !it->second[leaf]) continue;
      Node& node = nodes_[static_cast<size_t>(ids[leaf])];
      if (node.annotated) {
        CheckAgrees(instruction, it->second[leaf]->sharding, node);
        continue;
      }
      node.annotated = true;
      node.annotated_by = &instruction;
      node.sharding = it->second[leaf]->sharding;
      node.open = it->second[leaf]->open;
      node.priority = it->second[leaf]->priority;
    }
  }

  // What a loop carries lies in its body as it lies outside. Elsewhere a second annotation is a change of places.
  void CheckAgrees(const Instruction& instruction, const MeshSharding& sharding, const Node& node) const {
    if (!instruction.Is(Opcode::kParameter) || node.annotated_by == nullptr || sharding.dims == node.sharding.dims)
      return;
    const auto place = [&](const Instruction& at) {
      const std::string source = module_.SourceOf(at);
      return fmt::format("%{}{}{}", at.name(), source.empty() ? "" : " at ", source);
    };
    Invalid("annotations contradict each other: a carried {} is {} in {}, and {} in {}, the loop that carries it",
            node.shape.ToString(false), ToHloSharding(mesh_, sharding).ToString(), place(instruction),
            ToHloSharding(mesh_, node.sharding).ToString(), place(*node.annotated_by));
  }

  // A slice of `whole` without `dimension`, as a scan's steps see it: it lies like the rest of the whole.
  void LinkSlice(int whole, int slice, int64_t dimension) {
    const hlo::Shape& shape = nodes_[static_cast<size_t>(whole)].shape;
    Op op;
    FactorRule::Tensor of_whole, of_slice;
    for (int64_t d = 0; d < shape.rank(); ++d) {
      op.rule.factors.push_back({shape.dimension(d), FactorKind::kParallel});
      of_whole.push_back({static_cast<int>(d)});
      if (d != dimension) of_slice.push_back({static_cast<int>(d)});
    }
    op.rule.operands = {of_whole};
    op.rule.results = {of_slice};
    op.operands = {whole};
    op.results = {slice};
    ops_.push_back(std::move(op));
  }

  // Two groups of values that should lie alike but need not.
  void Link(const std::vector<int>& a, const std::vector<int>& b) {
    for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
      if (a[i] < 0 || b[i] < 0 || a[i] == b[i]) continue;
      const hlo::Shape& shape = nodes_[static_cast<size_t>(a[i])].shape;
      if (!shape.SameDimensions(nodes_[static_cast<size_t>(b[i])].shape)) continue;
      Op op;
      FactorRule::Tensor tensor;
      for (int64_t d = 0; d < shape.rank(); ++d) {
        op.rule.factors.push_back({shape.dimension(d), FactorKind::kParallel});
        tensor.push_back({static_cast<int>(d)});
      }
      op.rule.operands = {tensor};
      op.rule.results = {tensor};
      op.operands = {a[i]};
      op.results = {b[i]};
      ops_.push_back(std::move(op));
    }
  }

  void Visit(const Computation& computation) {
    for (const Instruction* instruction : computation.PostOrder()) {
      std::vector<int> ids = VisitInstruction(*instruction);
      Annotate(*instruction, ids);
      node_of_[instruction] = std::move(ids);
      VisitCallees(*instruction);
    }
  }

  std::vector<int> VisitInstruction(const Instruction& instruction) {
    if (const auto ids = NodesHandedOn(node_of_, instruction)) return *ids;
    if (instruction.Is(Opcode::kParameter)) {
      // A loop's body and condition see the values that it carries.
      const auto known = node_of_.find(&instruction);
      return known == node_of_.end() ? NewNodes(instruction) : known->second;
    }
    std::vector<int> ids = NewNodes(instruction);
    if (!instruction.Has(hlo::kControl) && !IsManualBoundary(instruction) && !IsPropagationBarrier(instruction)) {
      Op op;
      op.rule = FactorRuleOf(instruction);
      if (op.rule.is_known && !op.rule.factors.empty()) {
        op.operands = OperandNodes(node_of_, instruction);
        op.results = ids;
        op.level = LevelOf(instruction);
        if (op.operands.size() == op.rule.operands.size()) ops_.push_back(std::move(op));
      }
    }
    if (!instruction.Has(hlo::kControl))
      manual_flows_.push_back({&instruction, OperandNodes(node_of_, instruction), ids});
    return ids;
  }

  // A scan's step sees slices of its inputs, and the carries as they go around.
  void VisitStep(const Instruction& scan) {
    const ScanParts parts(scan);
    const std::vector<int> ids = node_of_.at(&scan);
    const std::vector<int> carried(ids.begin() + parts.outputs, ids.end());
    std::vector<int> initial;
    const Computation& step = *scan.called();
    for (int64_t p = 0; p < step.parameter_count(); ++p) {
      const Instruction* parameter = step.parameter(p);
      const std::vector<int>& operand = node_of_.at(scan.operand(p));
      if (p < parts.inputs) {
        const std::vector<int> slice = NewNodes(*parameter);
        node_of_[parameter] = slice;
        LinkSlice(operand[0], slice[0], parts.dimension);
        manual_flows_.push_back({&scan, operand, slice});
        continue;
      }
      const auto first = carried.begin() + static_cast<std::ptrdiff_t>(initial.size());
      node_of_[parameter] = {first, first + static_cast<std::ptrdiff_t>(operand.size())};
      initial.insert(initial.end(), operand.begin(), operand.end());
    }
    Link(initial, carried);
    Visit(step);
    const std::vector<int> results = node_of_.at(step.root());
    for (size_t i = 0; i < static_cast<size_t>(parts.outputs); ++i) LinkSlice(ids[i], results[i], parts.dimension);
    Link({results.begin() + parts.outputs, results.end()}, carried);
    manual_flows_.push_back({&scan, results, ids});
  }

  void VisitCallees(const Instruction& instruction) {
    if (instruction.Is(Opcode::kScan)) return VisitStep(instruction);
    if (!instruction.Has(hlo::kControl)) return;
    const std::vector<int> ids = node_of_.at(&instruction);
    if (instruction.Is(Opcode::kWhile)) {
      node_of_[instruction.while_condition()->parameter(0)] = ids;
      node_of_[instruction.while_body()->parameter(0)] = ids;
      Link(node_of_.at(instruction.operand(0)), ids);
      manual_flows_.push_back({&instruction, node_of_.at(instruction.operand(0)), ids});
    }
    const bool is_conditional = instruction.Is(Opcode::kConditional);
    for (size_t i = 0; i < instruction.called_computations().size(); ++i) {
      const Computation& callee = *instruction.called(static_cast<int64_t>(i));
      if (!instruction.Is(Opcode::kWhile)) {
        for (int64_t p = 0; p < callee.parameter_count(); ++p) {
          const int64_t operand = is_conditional ? static_cast<int64_t>(i) + 1 : p;
          const std::vector<int> inside = NewNodes(*callee.parameter(p));
          node_of_[callee.parameter(p)] = inside;
          Link(node_of_.at(instruction.operand(operand)), inside);
          manual_flows_.push_back({&instruction, node_of_.at(instruction.operand(operand)), inside});
        }
      }
      Visit(callee);
      if (&callee == (instruction.Is(Opcode::kWhile) ? instruction.while_condition() : nullptr)) continue;
      Link(node_of_.at(callee.root()), ids);
      manual_flows_.push_back({&instruction, node_of_.at(callee.root()), ids});
    }
  }

  // The entry's root is as its own annotation says, wherever the values that it returns lie.
  void AnnotateOutputs() {
    const Instruction& root = *module_.entry()->root();
    const auto it = annotations_.values.find(&root);
    const std::vector<int>& ids = node_of_.at(&root);
    outputs_.resize(ids.size());
    for (size_t leaf = 0; leaf < ids.size(); ++leaf) {
      const bool said = it != annotations_.values.end() && leaf < it->second.size() && it->second[leaf];
      if (said) outputs_[leaf] = it->second[leaf]->sharding;
      const auto& allowed = module_.allow_spmd_sharding_propagation_to_output;
      const bool fixed = !allowed.empty() && !allowed[std::min(leaf, allowed.size() - 1)];
      if (!said && fixed) outputs_[leaf] = MeshSharding::Replicated(hlo::FlattenShape(root.shape())[leaf].rank());
    }
  }

  void CloseFixedParameters() {
    const auto& allowed = module_.allow_spmd_sharding_propagation_to_parameters;
    size_t leaf = 0;
    for (const Instruction* parameter : module_.entry()->parameters()) {
      for (const int id : node_of_.at(parameter)) {
        const size_t index = leaf++;
        if (allowed.empty() || id < 0 || allowed[std::min(index, allowed.size() - 1)]) continue;
        Node& node = nodes_[static_cast<size_t>(id)];
        if (!node.annotated) node.open.assign(node.open.size(), false);
      }
    }
  }

  // Values that depend on a manual computation's are part of it.
  bool SpreadManual() {
    bool changed = false;
    for (const ManualFlow& flow : manual_flows_) {
      AxisList axes;
      for (const int id : flow.from) {
        if (id < 0) continue;
        for (const Axis axis : nodes_[static_cast<size_t>(id)].sharding.manual) {
          if (!Contains(axes, axis)) axes.push_back(axis);
        }
      }
      if (const auto it = annotations_.boundaries.find(flow.instruction); it != annotations_.boundaries.end()) {
        for (const Axis axis : it->second.manual) {
          std::erase(axes, axis);
          if (it->second.enters) axes.push_back(axis);
        }
      }
      for (size_t i = 0; i < flow.to.size(); ++i) {
        if (flow.to[i] < 0) continue;
        MeshSharding& sharding = nodes_[static_cast<size_t>(flow.to[i])].sharding;
        for (const Axis axis : axes) {
          if (Contains(sharding.manual, axis)) continue;
          sharding.manual.push_back(axis);
          std::sort(sharding.manual.begin(), sharding.manual.end());
          changed = true;
          // What is manual cuts no dimension.
          for (AxisList& dim : sharding.dims) std::erase(dim, axis);
        }
      }
      SeedBoundary(flow);
    }
    return changed;
  }

  // Inside, an array is cut by what its sharding outside has beyond the manual axes.
  void SeedBoundary(const ManualFlow& flow) {
    const auto it = annotations_.boundaries.find(flow.instruction);
    if (it == annotations_.boundaries.end()) return;
    const ManualBoundary& boundary = it->second;
    const std::vector<int>& inside = boundary.enters ? flow.to : flow.from;
    const std::vector<int>& outside = boundary.enters ? flow.from : flow.to;
    for (size_t i = 0; i < boundary.shardings.size(); ++i) {
      if (i < inside.size() && inside[i] >= 0 && boundary.enters) {
        Node& node = nodes_[static_cast<size_t>(inside[i])];
        if (!node.annotated) {
          node.annotated = true;
          node.open = boundary.open[i];
          for (size_t d = 0; d < node.sharding.dims.size(); ++d) {
            node.sharding.dims[d] = boundary.shardings[i].dims[d];
            for (const Axis axis : boundary.manual) std::erase(node.sharding.dims[d], axis);
          }
        }
      }
      if (i < outside.size() && outside[i] >= 0 && !boundary.enters) {
        Node& node = nodes_[static_cast<size_t>(outside[i])];
        if (!node.annotated) {
          node.annotated = true;
          node.sharding.dims = boundary.shardings[i].dims;
          node.open.assign(node.open.size(), false);
        }
      }
    }
  }

  std::set<int> Priorities() const {
    std::set<int> priorities = {0};
    for (const Node& node : nodes_) priorities.insert(node.priority);
    return priorities;
  }

  void Fixpoint(int level) {
    for (bool changed = true; changed;) {
      changed = false;
      for (const Op& op : ops_) {
        if (op.level <= level) changed |= Spread(op);
      }
      // Backwards, too: long chains settle in few rounds.
      for (auto op = ops_.rbegin(); op != ops_.rend(); ++op) {
        if (op->level <= level) changed |= Spread(*op);
      }
    }
  }

  // What one tensor says of each factor.
  void Gather(const Op& op, int id, const FactorRule::Tensor& tensor,
              std::vector<std::vector<std::pair<int64_t, AxisList>>>& said) {
    if (id < 0 || nodes_[static_cast<size_t>(id)].priority > priority_) return;
    const Node& node = nodes_[static_cast<size_t>(id)];
    if (node.sharding.IsReplicated()) return;
    FactorAxes axes(op.rule.factors.size());
    AbsorbTensor(mesh_, op.rule, tensor, node.sharding, axes);
    for (size_t f = 0; f < axes.size(); ++f) {
      if (!axes[f].empty()) said[f].emplace_back(node.shape.ByteSize(), std::move(axes[f]));
    }
  }

  FactorAxes Merge(const Op& op) {
    std::vector<std::vector<std::pair<int64_t, AxisList>>> said(op.rule.factors.size());
    for (size_t i = 0; i < op.operands.size(); ++i) Gather(op, op.operands[i], op.rule.operands[i], said);
    for (size_t i = 0; i < op.results.size(); ++i) Gather(op, op.results[i], op.rule.results[i], said);
    FactorAxes merged(op.rule.factors.size());
    for (const bool combined : {false, true}) {
      for (size_t f = 0; f < said.size(); ++f) {
        const FactorKind kind = op.rule.factors[f].kind;
        if (said[f].empty() || combined != (kind == FactorKind::kReduced || kind == FactorKind::kSelected)) continue;
        for (const Axis axis : MergeLists(said[f], op.level)) {
          const bool taken =
              std::any_of(merged.begin(), merged.end(), [&](const AxisList& l) { return Contains(l, axis); });
          if (taken) break;
          merged[f].push_back(axis);
        }
      }
    }
    Legalize(mesh_, op.rule, merged);
    return merged;
  }

  static AxisList MergeLists(const std::vector<std::pair<int64_t, AxisList>>& said, int level) {
    AxisList longest = said[0].second;
    int64_t bytes = said[0].first;
    for (const auto& [size, list] : said) {
      if (IsPrefix(list, longest)) continue;
      if (IsPrefix(longest, list)) {
        longest = list;
      } else if (level > 0 && size > bytes) {
        longest = list;
        bytes = size;
      } else if (level == 0) {
        size_t common = 0;
        while (common < list.size() && common < longest.size() && list[common] == longest[common]) ++common;
        longest.resize(common);
      }
    }
    return longest;
  }

  bool Spread(const Op& op) {
    const FactorAxes merged = Merge(op);
    if (std::all_of(merged.begin(), merged.end(), [](const AxisList& l) { return l.empty(); })) return false;
    bool changed = false;
    for (size_t i = 0; i < op.operands.size(); ++i) changed |= Extend(op.operands[i], op.rule.operands[i], merged);
    for (size_t i = 0; i < op.results.size(); ++i) changed |= Extend(op.results[i], op.rule.results[i], merged);
    return changed;
  }

  bool Extend(int id, const FactorRule::Tensor& tensor, const FactorAxes& merged) {
    if (id < 0 || nodes_[static_cast<size_t>(id)].priority > priority_) return false;
    Node& node = nodes_[static_cast<size_t>(id)];
    const MeshSharding wanted = ShardingOf(tensor, merged, {});
    bool changed = false;
    for (size_t d = 0; d < tensor.size(); ++d) {
      AxisList& mine = node.sharding.dims[d];
      if (!node.open[d] || !IsPrefix(mine, wanted.dims[d])) continue;
      for (size_t i = mine.size(); i < wanted.dims[d].size(); ++i) {
        const Axis axis = wanted.dims[d][i];
        AxisList longer = mine;
        longer.push_back(axis);
        if (node.sharding.Uses(axis) || !IsWorthCutting(node.shape.dimension(static_cast<int64_t>(d)), longer)) break;
        mine = std::move(longer);
        changed = true;
      }
    }
    return changed;
  }

  // No part may be all padding.
  bool IsWorthCutting(int64_t size, const AxisList& axes) const {
    const int64_t parts = mesh_.SizeOf(axes);
    return size > 0 && (parts - 1) * ((size + parts - 1) / parts) < size;
  }

  PropagationResult Collect() const {
    PropagationResult result;
    for (const auto& [instruction, ids] : node_of_) {
      std::vector<MeshSharding>& shardings = result.shardings[instruction];
      for (const int id : ids) {
        shardings.push_back(id < 0 ? MeshSharding{} : nodes_[static_cast<size_t>(id)].sharding);
        shardings.back().partial.clear();
      }
    }
    const std::vector<int>& root = node_of_.at(module_.entry()->root());
    for (size_t leaf = 0; leaf < outputs_.size(); ++leaf) {
      const bool is_array = root[leaf] >= 0;
      result.outputs.push_back(outputs_[leaf] ? *outputs_[leaf]
                               : is_array     ? nodes_[static_cast<size_t>(root[leaf])].sharding
                                              : MeshSharding{});
      result.outputs.back().partial.clear();
    }
    return result;
  }

  const hlo::Module& module_;
  const ModuleAnnotations& annotations_;
  const Mesh& mesh_;
  std::vector<Node> nodes_;
  std::vector<Op> ops_;
  LeafNodes node_of_;
  std::vector<ManualFlow> manual_flows_;
  std::vector<std::optional<MeshSharding>> outputs_;
  int priority_ = 0;
};

}  // namespace

PropagationResult Propagate(const hlo::Module& module, const ModuleAnnotations& annotations) {
  return Propagator(module, annotations).Run();
}

}  // namespace hlorun::passes::spmd
