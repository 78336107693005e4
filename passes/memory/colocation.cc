#include "passes/memory/colocation.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "hlo/error.h"
#include "passes/fusion/updated_part.h"

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Opcode;

Colocation::Colocation(const hlo::Module& module, const Dataflow& dataflow, const LiveRanges& live,
                       const KernelModel& kernels)
    : dataflow_(dataflow), live_(live), kernels_(kernels) {
  FindAliases(module);
  std::vector<int64_t> first_leaf;
  int64_t leaves = 0;
  for (const Instruction* parameter : module.entry()->parameters()) {
    first_leaf.push_back(leaves);
    leaves += hlo::LeafCount(parameter->shape());
  }
  for (size_t i = 0; i < dataflow.values().size(); ++i) {
    const Value& value = dataflow.values()[i];
    const auto id = static_cast<ValueId>(i);
    Set set{{}, {}, value.kind == Value::Kind::kDefined, value.bytes};
    for (const Range& range : live.RangesOf(id)) set.lives.push_back({range, id});
    if (value.kind == Value::Kind::kConstant) set.home = {Home::Kind::kConstant, id};
    if (value.kind == Value::Kind::kArgument) {
      const int64_t leaf = first_leaf[static_cast<size_t>(value.instruction->parameter_number())] + value.leaf;
      const int64_t result = aliased_results_[static_cast<size_t>(leaf)];
      set.home = result < 0 ? Home{Home::Kind::kArgument, leaf} : Home{Home::Kind::kResult, result};
    }
    parent_.push_back(id);
    sets_.push_back(std::move(set));
  }
}

void Colocation::FindAliases(const hlo::Module& module) {
  const auto leaf_at = [](const hlo::Shape& shape, const hlo::ShapeIndex& index) {
    int64_t leaf = 0;
    const hlo::Shape* inner = &shape;
    for (const int64_t i : index) {
      leaf += FirstLeafOf(*inner, i);
      inner = &inner->tuple_shape(i);
    }
    return leaf;
  };
  std::vector<int64_t> first_leaf;
  for (const Instruction* parameter : module.entry()->parameters()) {
    first_leaf.push_back(static_cast<int64_t>(aliased_results_.size()));
    aliased_results_.resize(aliased_results_.size() + static_cast<size_t>(hlo::LeafCount(parameter->shape())), -1);
  }
  for (const hlo::AliasEntry& entry : module.input_output_alias) {
    const Instruction* parameter = module.entry()->parameter(entry.parameter);
    const int64_t leaf =
        first_leaf[static_cast<size_t>(entry.parameter)] + leaf_at(parameter->shape(), entry.parameter_index);
    aliased_results_[static_cast<size_t>(leaf)] = leaf_at(module.entry()->root()->shape(), entry.output);
  }
}

std::vector<Range> Colocation::Set::Lives() const {
  std::vector<Range> joined;
  for (const Life& life : lives) {
    if (!joined.empty() && life.range.begin <= joined.back().end + 1) {
      joined.back().end = std::max(joined.back().end, life.range.end);
    } else {
      joined.push_back(life.range);
    }
  }
  return joined;
}

ValueId Colocation::Find(ValueId value) const {
  ValueId root = value;
  while (parent_[static_cast<size_t>(root)] != root) root = parent_[static_cast<size_t>(root)];
  while (parent_[static_cast<size_t>(value)] != root) {
    value = std::exchange(parent_[static_cast<size_t>(value)], root);
  }
  return root;
}

bool Colocation::MayShare(ValueId operand, ValueId result) const {
  const Value& written = dataflow_.value(result);
  if (written.kind != Value::Kind::kDefined || written.bytes != dataflow_.value(operand).bytes) return false;
  bool reads = false;
  for (int64_t i = 0; i < written.instruction->operand_count(); ++i) {
    const auto& leaves = dataflow_.ValuesOf(written.instruction->operand(i));
    if (std::find(leaves.begin(), leaves.end(), operand) == leaves.end()) continue;
    if (leaves.size() != 1 || !kernels_.MayShareBuffer(*written.instruction, i, written.leaf)) return false;
    reads = true;
  }
  return reads;
}

bool Colocation::Collide(const Set& a, const Set& b) const {
  const auto pair_collides = [&](const Life& x, const Life& y) {
    if (!x.range.Overlaps(y.range)) return false;
    // The last read of one may be the write of the other.
    if (x.range.end == y.range.begin && x.range.begin < y.range.begin) return !MayShare(x.value, y.value);
    if (y.range.end == x.range.begin && y.range.begin < x.range.begin) return !MayShare(y.value, x.value);
    return true;
  };
  const auto& few = a.lives.size() < b.lives.size() ? a.lives : b.lives;
  const auto& many = a.lives.size() < b.lives.size() ? b.lives : a.lives;
  for (const Life& x : few) {
    auto y = std::lower_bound(many.begin(), many.end(), x.range.begin,
                              [](const Life& life, int64_t time) { return life.range.end < time; });
    for (; y != many.end() && y->range.begin <= x.range.end; ++y) {
      if (pair_collides(x, *y)) return true;
    }
  }
  return false;
}

bool Colocation::TryJoin(ValueId a, ValueId b) {
  a = Find(a);
  b = Find(b);
  if (a == b) return true;
  Set& into = sets_[static_cast<size_t>(a)];
  Set& from = sets_[static_cast<size_t>(b)];
  const Home& home = into.home.kind == Home::Kind::kAnywhere ? from.home : into.home;
  if (from.home.kind != Home::Kind::kAnywhere && from.home != home) return false;
  if (home.IsReadOnly() && (into.is_written || from.is_written)) return false;
  // Nothing is written in a read-only home, so lives in it may overlap: all its values are the same.
  if (!home.IsReadOnly() && Collide(into, from)) return false;
  std::vector<Life> lives;
  std::merge(into.lives.begin(), into.lives.end(), from.lives.begin(), from.lives.end(), std::back_inserter(lives),
             [](const Life& x, const Life& y) { return x.range.begin < y.range.begin; });
  into.home = Home(home);
  into.lives = std::move(lives);
  into.is_written |= from.is_written;
  into.bytes = std::max(into.bytes, from.bytes);
  from = {};
  parent_[static_cast<size_t>(b)] = a;
  return true;
}

bool Colocation::TryHome(ValueId value, Home home) {
  Set& set = sets_[static_cast<size_t>(Find(value))];
  if (set.home.kind == Home::Kind::kAnywhere) set.home = home;
  return set.home == home;
}

namespace {

void AppendFlows(const Dataflow& dataflow, Instruction* source, Instruction* consumer, const Instruction* definer,
                 Value::Kind kind, std::vector<Flow>& flows) {
  const auto& from = dataflow.ValuesOf(source);
  const auto& to = dataflow.ValuesOf(definer);
  for (size_t leaf = 0; leaf < to.size(); ++leaf) {
    if (to[leaf] == kNoValue) continue;
    const Value& value = dataflow.value(to[leaf]);
    const bool own = value.kind == kind && value.instruction == definer && value.leaf == static_cast<int64_t>(leaf);
    if (own) flows.push_back({from[leaf], to[leaf], source, consumer, static_cast<int64_t>(leaf)});
  }
}

// Loop results first (they always join), then back edges, branches and results, then initial values.
std::vector<Flow> FlowsOf(const hlo::Module& module, const Dataflow& dataflow, const Colocation& sets) {
  std::vector<Flow> flows, roots, initial;
  for (hlo::Computation* computation : module.ControlComputations()) {
    for (const auto& instruction : computation->instructions()) {
      if (instruction->Is(Opcode::kWhile)) {
        hlo::Computation* body = instruction->while_body();
        Instruction* carried = body->parameter(0);
        AppendFlows(dataflow, carried, nullptr, instruction.get(), Value::Kind::kLoopResult, flows);
        AppendFlows(dataflow, body->root(), nullptr, carried, Value::Kind::kCarried, roots);
        AppendFlows(dataflow, instruction->operand(0), instruction.get(), carried, Value::Kind::kCarried, initial);
      } else if (instruction->Is(Opcode::kConditional)) {
        for (const hlo::Computation* branch : instruction->called_computations()) {
          AppendFlows(dataflow, branch->root(), nullptr, instruction.get(), Value::Kind::kJoin, roots);
        }
      }
    }
  }
  std::vector<ValueId> arguments;
  for (const Instruction* parameter : module.entry()->parameters()) {
    const auto& leaves = dataflow.ValuesOf(parameter);
    arguments.insert(arguments.end(), leaves.begin(), leaves.end());
  }
  Instruction* root = module.entry()->root();
  const auto& results = dataflow.ValuesOf(root);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const int64_t leaf = sets.aliased_results()[i];
    if (leaf >= 0) roots.push_back({results[static_cast<size_t>(leaf)], arguments[i], root, nullptr, leaf});
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i] != kNoValue) roots.push_back({results[i], kNoValue, root, nullptr, static_cast<int64_t>(i)});
  }
  flows.insert(flows.end(), roots.begin(), roots.end());
  flows.insert(flows.end(), initial.begin(), initial.end());
  return flows;
}

}  // namespace

std::vector<Flow> JoinFlows(const hlo::Module& module, const Dataflow& dataflow, Colocation& sets) {
  std::vector<Flow> flows = FlowsOf(module, dataflow, sets);
  // A slot that an argument or a constant enters first could not be written: these come last, and get the copies.
  const auto from_read_only = std::stable_partition(
      flows.begin(), flows.end(), [&](const Flow& flow) { return !sets.SetOf(flow.from).home.IsReadOnly(); });
  std::vector<Flow> failed;
  const auto join = [&](const Flow& flow) {
    // A result may be an argument or a constant as it stands.
    const bool joined = flow.to != kNoValue ? sets.TryJoin(flow.to, flow.from)
                                            : sets.SetOf(flow.from).home.IsReadOnly() ||
                                                  sets.TryHome(flow.from, {Home::Kind::kResult, flow.leaf});
    if (!joined) failed.push_back(flow);
  };
  std::for_each(flows.begin(), from_read_only, join);
  std::for_each(from_read_only, flows.end(), join);
  return failed;
}

void ShareInPlace(const Dataflow& dataflow, const LiveRanges& live, const KernelModel& kernels, Colocation& sets) {
  const auto share = [&](const Instruction* instruction) {
    const auto& results = dataflow.ValuesOf(instruction);
    for (size_t leaf = 0; leaf < results.size(); ++leaf) {
      for (int64_t i = 0; i < instruction->operand_count(); ++i) {
        const auto& operand = dataflow.ValuesOf(instruction->operand(i));
        if (operand.size() != 1 || operand[0] == kNoValue || results[leaf] == kNoValue) continue;
        if (dataflow.value(operand[0]).bytes != dataflow.value(results[leaf]).bytes) continue;
        if (!kernels.MayShareBuffer(*instruction, i, static_cast<int64_t>(leaf))) continue;
        if (sets.TryJoin(operand[0], results[leaf])) break;
      }
    }
  };
  const auto updates = [](const Instruction* instruction) {
    const Instruction* hero = instruction->Is(Opcode::kFusion) ? instruction->called()->root() : instruction;
    return UpdatesPart(*hero) || hero->Is(Opcode::kCopy);
  };
  for (const bool first : {true, false}) {
    for (const Instruction* instruction : live.order()) {
      if (!MovesNoData(*instruction) && updates(instruction) == first) share(instruction);
    }
  }
}

}  // namespace hlorun::passes
