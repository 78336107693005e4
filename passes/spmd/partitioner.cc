#include "passes/spmd/partitioner.h"

#include <algorithm>
#include <map>

#include "hlo/error.h"
#include "passes/expand/reducer_identity.h"
#include "passes/spmd/channels.h"
#include "passes/spmd/local_op.h"
#include "passes/spmd/part_sizes.h"
#include "passes/spmd/reshard.h"
#include "passes/spmd/scan_parts.h"

namespace hlorun::passes::spmd {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

// One array (or token) as this device has it.
struct Value {
  Instruction* local = nullptr;
  MeshSharding sharding;
  Shape global;
};
using Values = std::vector<Value>;  // leaves

struct ModuleState {
  hlo::Module& module;
  const Mesh& mesh;
  const ModuleAnnotations& annotations;
  const ShardingTable& shardings;
  PassContext& context;
  int64_t next_channel = 1;
};

std::string Mebibytes(double bytes) { return fmt::format("{:.3f} MiB", bytes / (1 << 20)); }

class ComputationPartitioner {
 public:
  ComputationPartitioner(ModuleState& state, const Computation& source)
      : state_(state),
        mesh_(state.mesh),
        source_(source),
        target_(state.module.AddComputation(source.name())),
        build_(target_, state.mesh, &state.next_channel) {}

  // The parameters lie as the table says, the root's leaves as `outputs` say.
  Computation* Run(const std::vector<MeshSharding>& outputs) {
    for (const Instruction* parameter : source_.parameters()) AddParameter(*parameter);
    for (const Instruction* instruction : source_.PostOrder()) {
      build_.set_origin(instruction);
      if (!instruction->Is(Opcode::kParameter)) values_[instruction] = Partition(*instruction);
    }
    const Instruction& root = *source_.root();
    build_.set_origin(&root);
    const Values& leaves = values_.at(&root);
    std::vector<Instruction*> locals;
    for (size_t i = 0; i < leaves.size(); ++i) locals.push_back(Resharded(leaves[i], outputs[i], root, "the result"));
    // The root is last, and an instruction of its own: a parameter may be returned twice.
    target_->set_root(root.shape().IsTuple() ? TupleOf(root.shape(), locals) : locals[0]);
    return target_;
  }

 private:
  const std::vector<MeshSharding>& AssignedTo(const Instruction& instruction) const {
    return state_.shardings.at(&instruction);
  }

  static Shape WithLeaves(const Shape& shape, const std::vector<Shape>& leaves, size_t& next) {
    if (!shape.IsTuple()) return leaves[next++];
    std::vector<Shape> elements;
    for (const Shape& element : shape.tuple_shapes()) elements.push_back(WithLeaves(element, leaves, next));
    return Shape::Tuple(std::move(elements));
  }

  Shape LocalOf(const Shape& shape, const std::vector<MeshSharding>& shardings) const {
    std::vector<Shape> leaves;
    for (Shape& leaf : hlo::FlattenShape(shape)) {
      const MeshSharding& sharding = shardings[leaves.size()];
      leaves.push_back(leaf.IsArray() ? LocalShape(mesh_, leaf, sharding) : leaf);
    }
    size_t next = 0;
    return WithLeaves(shape, leaves, next);
  }

  void Unpack(Instruction* local, const Shape& global, const std::vector<MeshSharding>& shardings, Values& values) {
    if (!global.IsTuple()) {
      values.push_back({local, shardings[values.size()], global});
      return;
    }
    for (size_t i = 0; i < global.tuple_shapes().size(); ++i) {
      Unpack(build_.Make().GetTupleElement(local, static_cast<int64_t>(i)), global.tuple_shapes()[i], shardings,
             values);
    }
  }

  Values Unpacked(Instruction* local, const Shape& global, const std::vector<MeshSharding>& shardings) {
    Values values;
    Unpack(local, global, shardings, values);
    return values;
  }

  Instruction* TupleOf(const Shape& shape, const std::vector<Instruction*>& leaves) {
    size_t next = 0;
    return TupleFrom(shape, leaves, next);
  }
  Instruction* TupleFrom(const Shape& shape, const std::vector<Instruction*>& leaves, size_t& next) {
    if (!shape.IsTuple()) return leaves[next++];
    std::vector<Instruction*> elements;
    for (const Shape& element : shape.tuple_shapes()) elements.push_back(TupleFrom(element, leaves, next));
    return build_.Make().Tuple(std::move(elements));
  }

  void AddParameter(const Instruction& parameter) {
    const std::vector<MeshSharding>& shardings = AssignedTo(parameter);
    const Shape local = LocalOf(parameter.shape(), shardings);
    Instruction* added = target_->AddParameter(parameter.parameter_number(), local, parameter.name());
    added->metadata = parameter.metadata;
    added->frontend_attributes = parameter.frontend_attributes;
    added->set_attributes(parameter.attributes());
    build_.set_origin(&parameter);
    values_[&parameter] = Unpacked(added, parameter.shape(), shardings);
  }

  // --- values ---

  Instruction* Resharded(const Value& value, MeshSharding wanted, const Instruction& user, std::string_view role,
                         Opcode reducer = Opcode::kAdd) {
    if (!value.global.IsArray()) return value.local;
    wanted.manual = value.sharding.manual;
    if (value.sharding == wanted) return value.local;
    std::vector<Reshard>& known = resharded_[value.local];
    for (const Reshard& r : known) {
      const bool is_same = r.global == value.global.dimensions() && r.from == value.sharding && r.to == wanted;
      if (is_same && value.sharding.partial.empty()) return r.local;
    }
    const std::vector<ReshardStep> steps = PlanReshard(mesh_, value.global, value.sharding, wanted);
    Explain(steps, value, user, role);
    Instruction* local = EmitReshard(build_, value.global, value.local, steps, reducer);
    known.push_back({value.global.dimensions(), value.sharding, wanted, local});
    return local;
  }

  void Explain(const std::vector<ReshardStep>& steps, const Value& value, const Instruction& user,
               std::string_view role) {
    for (const ReshardStep& step : steps) {
      if (step.kind == ReshardStep::Kind::kSlice) continue;
      Remark& remark = About(user);
      remark.choice = StepName(step.kind);
      remark.reason =
          fmt::format("{} of {} ({} a device): {} lies as {}, wanted is {}", StepName(step.kind),
                      value.global.ToString(false), Mebibytes(step.bytes), role,
                      ToHloSharding(mesh_, step.before).ToString(), ToHloSharding(mesh_, step.after).ToString());
    }
  }

  void Warn(const Instruction& instruction, const std::string& message) {
    Remark& remark = About(instruction);
    remark.reason = message;
    remark.warns = true;
  }

  Remark& About(const Instruction& instruction) {
    Remark& remark = state_.context.remarks.emplace_back();
    remark.subject = Remark::Subject::kSharding;
    remark.instruction = instruction.name();
    remark.source = state_.module.SourceOf(instruction);
    return remark;
  }

  // The leaf of an operand that is one array.
  const Value& Operand(const Instruction& instruction, int64_t i) const {
    return values_.at(instruction.operand(i))[0];
  }

  Values OperandLeaves(const Instruction& instruction) const {
    Values leaves;
    for (const Instruction* operand : instruction.operands()) {
      const Values& values = values_.at(operand);
      leaves.insert(leaves.end(), values.begin(), values.end());
    }
    return leaves;
  }

  // --- instructions ---

  Values Partition(const Instruction& instruction) {
    switch (instruction.opcode()) {
      case Opcode::kTuple:
      case Opcode::kOptimizationBarrier:
      case Opcode::kAddDependency: {
        Values leaves = OperandLeaves(instruction);
        leaves.resize(static_cast<size_t>(hlo::LeafCount(instruction.shape())));
        return leaves;
      }
      case Opcode::kGetTupleElement: return ElementOf(instruction);
      case Opcode::kConstant: return {PartitionConstant(instruction)};
      case Opcode::kWhile: return PartitionWhile(instruction);
      case Opcode::kConditional: return PartitionConditional(instruction);
      case Opcode::kCall: return PartitionCall(instruction);
      case Opcode::kScan: return PartitionScan(instruction);
      case Opcode::kGetDimensionSize:
        if (Operand(instruction, 0).global.is_dynamic_dimension(instruction.dimensions()[0])) break;
        return {{build_.Make().ScalarConstant(hlo::ElementType::kS32,
                                              Operand(instruction, 0).global.dimension(instruction.dimensions()[0])),
                 MeshSharding::Replicated(0), instruction.shape()}};
      case Opcode::kCustomCall:
        if (IsManualBoundary(instruction)) return CrossBoundary(instruction);
        if (IsShardingConstraint(instruction)) return Constrain(instruction);
        if (instruction.users().empty() && !instruction.IsRoot() &&
            instruction.As<hlo::attr::CustomCall>().target == "xla.sdy.ShardingGroup") {
          return Values(static_cast<size_t>(hlo::LeafCount(instruction.shape())));
        }
        break;
      default: break;
    }
    return PartitionByFactors(instruction);
  }

  Values ElementOf(const Instruction& instruction) const {
    const Values& leaves = values_.at(instruction.operand(0));
    int64_t first = 0;
    for (int64_t i = 0; i < instruction.tuple_index(); ++i) {
      first += hlo::LeafCount(instruction.operand(0)->shape().tuple_shape(i));
    }
    return {leaves.begin() + first, leaves.begin() + first + hlo::LeafCount(instruction.shape())};
  }

  Value PartitionConstant(const Instruction& instruction) {
    const MeshSharding& wanted = AssignedTo(instruction)[0];
    const hlo::Literal& literal = instruction.literal();
    if (!wanted.IsReplicated() && literal.ElementCount() > 0 && literal.IsAllSame()) {
      hlo::Literal one(Shape::Scalar(literal.element_type()));
      std::copy_n(literal.data(), hlo::BytesOf(literal.element_type()), one.mutable_data());
      hlo::Builder b = build_.Make();
      const Shape local = LocalShape(mesh_, instruction.shape(), wanted);
      return {b.Broadcast(b.Constant(std::move(one)), local.dimensions(), {}), wanted, instruction.shape()};
    }
    Value whole{Clone(instruction, instruction.shape(), {}, instruction.attributes()),
                MeshSharding::Replicated(instruction.shape().rank()), instruction.shape()};
    whole.sharding.manual = wanted.manual;
    return {Resharded(whole, wanted, instruction, "the constant"), wanted, instruction.shape()};
  }

  Values Constrain(const Instruction& instruction) {
    const Values& operands = values_.at(instruction.operand(0));
    Values results;
    for (size_t i = 0; i < operands.size(); ++i) {
      MeshSharding wanted = AssignedTo(instruction)[i];
      wanted.manual = operands[i].sharding.manual;
      results.push_back(
          {Resharded(operands[i], wanted, instruction, "what is constrained"), wanted, operands[i].global});
    }
    return results;
  }

  // A shard_map's body sees the parts themselves: the same data under another shape.
  Values CrossBoundary(const Instruction& instruction) {
    const ManualBoundary& boundary = state_.annotations.boundaries.at(&instruction);
    const Values operands = OperandLeaves(instruction);
    const std::vector<Shape> shapes = hlo::FlattenShape(instruction.shape());
    const std::vector<MeshSharding>& assigned = AssignedTo(instruction);
    Values results;
    for (size_t i = 0; i < operands.size() && i < shapes.size(); ++i) {
      const Value& operand = operands[i];
      const MeshSharding& inner = boundary.enters ? assigned[i] : operand.sharding;
      MeshSharding outer = MeshSharding::Replicated(operand.global.rank());
      for (size_t d = 0; d < outer.dims.size(); ++d) {
        for (const Axis axis : boundary.shardings[i].dims[d]) {
          if (Contains(boundary.manual, axis)) outer.dims[d].push_back(axis);
        }
        outer.dims[d].insert(outer.dims[d].end(), inner.dims[d].begin(), inner.dims[d].end());
      }
      Instruction* local =
          boundary.enters ? Resharded(operand, outer, instruction, "a manual computation's operand") : operand.local;
      if (boundary.enters) {
        results.push_back({local, inner, shapes[i]});
      } else {
        outer.manual = assigned[i].manual;
        const Value whole{local, outer, shapes[i]};
        results.push_back(
            {Resharded(whole, assigned[i], instruction, "a manual computation's result"), assigned[i], shapes[i]});
      }
      const Shape& whole = boundary.enters ? operand.global : shapes[i];
      if (!LocalShape(mesh_, whole, outer).SameDimensions(local->shape()) ||
          !LocalShape(mesh_, boundary.enters ? shapes[i] : operand.global, inner)
               .SameDimensions(LocalShape(mesh_, whole, outer))) {
        Invalid("%{}: the parts of {} under the sharding of this manual computation are not {}", instruction.name(),
                whole.ToString(false), (boundary.enters ? shapes[i] : operand.global).ToString(false));
      }
    }
    return results;
  }

  Computation* Callee(const Computation& callee, const std::vector<MeshSharding>& outputs) {
    return ComputationPartitioner(state_, callee).Run(outputs);
  }

  std::vector<Instruction*> ReshardedLeaves(const Values& leaves, const std::vector<MeshSharding>& wanted,
                                            const Instruction& user, std::string_view role) {
    std::vector<Instruction*> locals;
    for (size_t i = 0; i < leaves.size(); ++i) locals.push_back(Resharded(leaves[i], wanted[i], user, role));
    return locals;
  }

  Instruction* Operation(const Instruction& instruction, const Shape& shape, std::vector<Instruction*> operands,
                         std::vector<Computation*> called) {
    auto made = std::make_unique<Instruction>(instruction.opcode(), shape, std::move(operands),
                                              instruction.attributes(), std::move(called));
    made->metadata = instruction.metadata;
    made->frontend_attributes = instruction.frontend_attributes;
    made->backend_config = instruction.backend_config;
    return target_->Add(std::move(made));
  }

  Values PartitionWhile(const Instruction& loop) {
    const std::vector<MeshSharding>& carried = AssignedTo(loop);
    Computation* condition = Callee(*loop.while_condition(), {MeshSharding::Replicated(0)});
    Computation* body = Callee(*loop.while_body(), carried);
    build_.set_origin(&loop);
    const std::vector<Instruction*> init =
        ReshardedLeaves(values_.at(loop.operand(0)), carried, loop, "a carried value");
    Instruction* tuple = TupleOf(loop.shape(), init);
    return Unpacked(Operation(loop, LocalOf(loop.shape(), carried), {tuple}, {condition, body}), loop.shape(), carried);
  }

  Values PartitionConditional(const Instruction& conditional) {
    const std::vector<MeshSharding>& results = AssignedTo(conditional);
    std::vector<Instruction*> operands = {Operand(conditional, 0).local};
    std::vector<Computation*> branches;
    for (size_t i = 0; i < conditional.called_computations().size(); ++i) {
      const auto branch = static_cast<int64_t>(i);
      const Computation& callee = *conditional.called(branch);
      branches.push_back(Callee(callee, results));
      build_.set_origin(&conditional);
      const Instruction* argument = conditional.operand(branch + 1);
      const std::vector<Instruction*> leaves =
          ReshardedLeaves(values_.at(argument), AssignedTo(*callee.parameter(0)), conditional, "a branch's operand");
      operands.push_back(TupleOf(argument->shape(), leaves));
    }
    return Unpacked(Operation(conditional, LocalOf(conditional.shape(), results), operands, branches),
                    conditional.shape(), results);
  }

  Values PartitionCall(const Instruction& call) {
    const std::vector<MeshSharding>& results = AssignedTo(call);
    Computation* callee = Callee(*call.called(), results);
    build_.set_origin(&call);
    std::vector<Instruction*> operands;
    for (int64_t i = 0; i < call.operand_count(); ++i) {
      const std::vector<Instruction*> leaves = ReshardedLeaves(
          values_.at(call.operand(i)), AssignedTo(*call.called()->parameter(i)), call, "a call's operand");
      operands.push_back(TupleOf(call.operand(i)->shape(), leaves));
    }
    return Unpacked(Operation(call, LocalOf(call.shape(), results), operands, {callee}), call.shape(), results);
  }

  // How the whole lies of which a scan's steps have slices that lie as `slice`: the steps are everyone's.
  static MeshSharding Stacked(MeshSharding slice, int64_t dimension) {
    slice.dims.insert(slice.dims.begin() + dimension, AxisList());
    return slice;
  }

  // Inputs and outputs lie along their other dimensions as the step has their slices; what else is wanted of them is
  // done once, outside.
  Values PartitionScan(const Instruction& scan) {
    const ScanParts parts(scan);
    const std::vector<MeshSharding>& wanted = AssignedTo(scan);
    const Computation& step = *scan.called();
    const auto outputs = static_cast<std::ptrdiff_t>(parts.outputs);
    std::vector<MeshSharding> results = AssignedTo(*step.root());
    std::copy(wanted.begin() + outputs, wanted.end(), results.begin() + outputs);
    Computation* callee = Callee(step, results);
    build_.set_origin(&scan);
    std::vector<Instruction*> operands;
    for (int64_t p = 0; p < scan.operand_count(); ++p) {
      std::vector<MeshSharding> lies = AssignedTo(*step.parameter(p));
      if (p < parts.inputs) lies[0] = Stacked(lies[0], parts.dimension);
      const std::vector<Instruction*> leaves =
          ReshardedLeaves(values_.at(scan.operand(p)), lies, scan, p < parts.inputs ? "an input" : "a carried value");
      operands.push_back(TupleOf(scan.operand(p)->shape(), leaves));
    }
    std::for_each(results.begin(), results.begin() + outputs,
                  [&](MeshSharding& sharding) { sharding = Stacked(std::move(sharding), parts.dimension); });
    Values values =
        Unpacked(Operation(scan, LocalOf(scan.shape(), results), std::move(operands), {callee}), scan.shape(), results);
    for (size_t leaf = 0; leaf < static_cast<size_t>(parts.outputs); ++leaf) {
      values[leaf].local = Resharded(values[leaf], wanted[leaf], scan, "an output");
      values[leaf].sharding = wanted[leaf];
    }
    return values;
  }

  Instruction* Clone(const Instruction& instruction, const Shape& shape, std::vector<Instruction*> operands,
                     hlo::Attributes attributes) {
    std::unique_ptr<Instruction> clone = instruction.CloneWithOperands(shape.WithoutLayout(), std::move(operands));
    clone->set_attributes(std::move(attributes));
    clone->sharding.reset();
    return target_->Add(std::move(clone));
  }

  // What an op of no known factors takes and gives is whole.
  Values PartitionByFactors(const Instruction& instruction) {
    FactorRule rule = FactorRuleOf(instruction);
    const Values operands = OperandLeaves(instruction);
    const std::vector<MeshSharding>& wanted = AssignedTo(instruction);
    if (!rule.is_known || operands.size() != rule.operands.size()) return Replicate(instruction);
    std::vector<MeshSharding> shardings;
    for (const Value& operand : operands) shardings.push_back(operand.sharding);
    const FactorAxes axes = ChooseAxes(mesh_, instruction, rule, shardings, wanted);
    LocalOp op{instruction, rule, axes, build_, {}, instruction.attributes(), {}};
    for (size_t i = 0; i < operands.size(); ++i) {
      const MeshSharding needed = ShardingOf(rule.operands[i], axes, operands[i].sharding.manual);
      op.operands.push_back(Resharded(operands[i], needed, instruction, fmt::format("operand {}", i)));
    }
    const std::vector<Shape> leaves = hlo::FlattenShape(instruction.shape());
    std::vector<MeshSharding> produced;
    for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
      produced.push_back(ShardingOf(rule.results[leaf], axes, wanted[leaf].manual));
      op.shapes.push_back(leaves[leaf].IsArray() ? LocalShape(mesh_, leaves[leaf], produced[leaf]) : leaves[leaf]);
    }
    const std::vector<Instruction*> inits = InitsOf(op);
    AdaptLocalOp(op);
    return Finish(op, produced, wanted, inits);
  }

  static std::vector<Instruction*> InitsOf(const LocalOp& op) {
    if (!op.original.Is(Opcode::kReduce)) return {};
    return {op.operands.begin() + op.original.operand_count() / 2, op.operands.end()};
  }

  Values Finish(LocalOp& op, const std::vector<MeshSharding>& produced, const std::vector<MeshSharding>& wanted,
                const std::vector<Instruction*>& inits) {
    const Instruction& instruction = op.original;
    size_t next = 0;
    if (op.done == nullptr)
      op.done = Clone(instruction, WithLeaves(instruction.shape(), op.shapes, next), op.operands, op.attributes);
    Values values = Unpacked(op.done, instruction.shape(), produced);
    const AxisList partial = PartialAxes(op.rule, op.axes);
    const std::optional<Opcode> combiner = CombinerOf(instruction);
    if (!partial.empty() && !combiner) CombineByGathering(instruction, partial, inits, values);
    for (size_t leaf = 0; leaf < values.size(); ++leaf) {
      Value& value = values[leaf];
      if (!value.global.IsArray()) continue;
      if (combiner) value.sharding.partial = partial;
      MeshSharding goal = wanted[leaf];
      goal.manual = value.sharding.manual;
      value.local = Resharded(value, goal, instruction, "what it computes", combiner.value_or(Opcode::kAdd));
      value.sharding = std::move(goal);
    }
    if (!partial.empty() && combiner && instruction.Is(Opcode::kReduce))
      ApplyInit(instruction, *combiner, inits[0], values[0]);
    return values;
  }

  // The parts counted from the reducer's identity; the init that the program gives counts once.
  void ApplyInit(const Instruction& reduce, Opcode reducer, Instruction* init, Value& value) {
    const bool is_identity =
        init->IsConstant() && init->literal() == ReducerIdentity(reducer, init->shape().element_type());
    if (is_identity || CountsOnce(reducer, *init)) return;
    build_.set_origin(&reduce);
    hlo::Builder b = build_.Make();
    value.local = b.Binary(reducer, b.Broadcast(init, value.local->shape().dimensions(), {}), value.local);
  }

  // Reducers that no collective knows: everyone gets all parts' results and reduces them.
  void CombineByGathering(const Instruction& reduce, const AxisList& partial, const std::vector<Instruction*>& inits,
                          Values& values) {
    std::vector<Instruction*> operands;
    hlo::Builder b = build_.Make();
    for (const Value& value : values) {
      hlo::Dims dims = value.local->shape().dimensions();
      dims.insert(dims.begin(), 1);
      operands.push_back(build_.AllGather(b.Reshape(value.local, dims), 0, partial));
    }
    Instruction* combined = b.Reduce(operands, inits, {0}, reduce.called());
    for (size_t leaf = 0; leaf < values.size(); ++leaf) {
      values[leaf].local =
          reduce.shape().IsTuple() ? b.GetTupleElement(combined, static_cast<int64_t>(leaf)) : combined;
    }
  }

  Values Replicate(const Instruction& instruction) {
    bool cut = false;
    std::vector<Instruction*> operands;
    for (const Instruction* operand : instruction.operands()) {
      std::vector<Instruction*> leaves;
      for (const Value& value : values_.at(operand)) {
        cut |= value.global.IsArray() && !value.sharding.IsReplicated();
        leaves.push_back(Resharded(value, MeshSharding::Replicated(value.global.rank()), instruction, "an operand"));
      }
      operands.push_back(TupleOf(operand->shape(), leaves));
    }
    if (cut) {
      Warn(instruction,
           fmt::format("{} cannot be cut: every device computes all of it", hlo::OpcodeName(instruction.opcode())));
    }
    Instruction* local = Clone(instruction, instruction.shape(), operands, instruction.attributes());
    const std::vector<MeshSharding>& wanted = AssignedTo(instruction);
    std::vector<MeshSharding> whole;
    for (const Shape& leaf : hlo::FlattenShape(instruction.shape())) {
      whole.push_back(MeshSharding::Replicated(leaf.rank()));
      whole.back().manual = wanted[whole.size() - 1].manual;
    }
    Values values = Unpacked(local, instruction.shape(), whole);
    for (size_t leaf = 0; leaf < values.size(); ++leaf) {
      values[leaf].local = Resharded(values[leaf], wanted[leaf], instruction, "its result");
      if (values[leaf].global.IsArray()) values[leaf].sharding = wanted[leaf];
    }
    return values;
  }

  ModuleState& state_;
  const Mesh& mesh_;
  const Computation& source_;
  Computation* target_;
  LocalBuilder build_;
  std::unordered_map<const Instruction*, Values> values_;
  // By what it was made of. A manual computation that returns its operand hands it on as another array.
  struct Reshard {
    hlo::Dims global;
    MeshSharding from, to;
    Instruction* local;
  };
  std::unordered_map<const Instruction*, std::vector<Reshard>> resharded_;
};

hlo::Sharding Structured(const Mesh& mesh, const Shape& shape, const std::vector<MeshSharding>& leaves, size_t& next) {
  if (!shape.IsTuple()) return ToHloSharding(mesh, leaves[next++]);
  hlo::Sharding tuple;
  tuple.kind = hlo::Sharding::Kind::kTuple;
  for (const Shape& leaf : hlo::FlattenShape(shape)) {
    static_cast<void>(leaf);
    tuple.elements.push_back(ToHloSharding(mesh, leaves[next++]));
  }
  return tuple;
}

// Aliases of arrays whose parts now differ in shape would be wrong.
void KeepFittingAliases(hlo::Module& module) {
  std::erase_if(module.input_output_alias, [&](const hlo::AliasEntry& alias) {
    const Shape& output = hlo::SubshapeAt(module.entry()->root()->shape(), alias.output);
    const Shape& input = hlo::SubshapeAt(module.entry()->parameter(alias.parameter)->shape(), alias.parameter_index);
    return !output.SameAs(input);
  });
}

}  // namespace

void PartitionComputations(hlo::Module& module, const Mesh& mesh, const ModuleAnnotations& annotations,
                           const PropagationResult& shardings, PassContext& context) {
  ModuleState state{module, mesh, annotations, shardings.shardings, context, FirstFreeChannel(module)};
  module.num_partitions = mesh.device_count();
  const Computation& whole = *module.entry();
  Computation* entry = ComputationPartitioner(state, whole).Run(shardings.outputs);
  for (Instruction* parameter : entry->parameters()) {
    const Instruction& original = *whole.parameter(parameter->parameter_number());
    size_t next = 0;
    parameter->sharding = Structured(mesh, original.shape(), shardings.shardings.at(&original), next);
  }
  size_t next = 0;
  if (entry->root()->Is(Opcode::kParameter)) {
    // The root's sharding is the result's; a parameter has its own.
    entry->set_root(hlo::Builder(entry, entry->root()).Unary(Opcode::kCopy, entry->root()));
  }
  std::vector<MeshSharding> outputs = shardings.outputs;
  // Sizes of whole arrays, and of nothing else.
  outputs.resize(outputs.size() + static_cast<size_t>(AddPartSizes(module, entry, mesh, outputs)),
                 MeshSharding::Replicated(0));
  entry->root()->sharding = Structured(mesh, entry->root()->shape(), outputs, next);
  module.set_entry(entry);
  module.RemoveUnreachable();
  hlo::ProgramShape layout;
  for (const Instruction* parameter : entry->parameters())
    layout.parameters.push_back(parameter->shape().WithRowMajorLayout());
  layout.result = entry->root()->shape().WithRowMajorLayout();
  module.entry_layout = std::move(layout);
  module.is_scheduled = false;
  KeepFittingAliases(module);
}

}  // namespace hlorun::passes::spmd
