#include "passes/dynamic/lower.h"

#include <algorithm>
#include <unordered_map>

#include "hlo/builder.h"
#include "hlo/error.h"
#include "passes/dynamic/carrier.h"
#include "passes/dynamic/op_lowering.h"
#include "passes/dynamic/scan_lowering.h"
#include "passes/dynamic/signature.h"
#include "passes/expand/batch_norm.h"
#include "passes/expand/reducer_types.h"
#include "passes/expand/top_k.h"

namespace hlorun::passes {

using hlo::Builder;
using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

namespace {

bool IsDynamic(const hlo::Module& module) {
  for (const auto& computation : module.computations()) {
    for (const auto& instruction : computation->instructions()) {
      if (!instruction->shape().IsStatic() || instruction->Is(Opcode::kSetDimensionSize) ||
          instruction->Is(Opcode::kGetDimensionSize) || instruction->Is(Opcode::kDynamicReshape)) {
        return true;
      }
    }
  }
  return false;
}

// These read or make sizes, whether or not their operands have any.
bool SpeaksOfSizes(const Instruction& op) {
  if (op.Is(Opcode::kGetDimensionSize) || op.Is(Opcode::kSetDimensionSize) || op.Is(Opcode::kDynamicReshape))
    return true;
  if (!op.Is(Opcode::kCustomCall)) return false;
  const std::string& target = op.As<hlo::attr::CustomCall>().target;
  return target == "PadToStatic" || target == "SliceToDynamic";
}

// `shape` with those dimensions dynamic that have sizes.
Shape WithSizes(const Shape& shape, const SizedValue& value) {
  if (shape.IsTuple()) {
    std::vector<Shape> elements;
    for (size_t i = 0; i < shape.tuple_shapes().size(); ++i)
      elements.push_back(WithSizes(shape.tuple_shapes()[i], value.elements[i]));
    return Shape::Tuple(std::move(elements));
  }
  Shape dynamic = StaticShape(shape);
  for (size_t d = 0; d < value.sizes.size(); ++d) {
    if (value.sizes[d] != nullptr) dynamic.set_dynamic_dimension(static_cast<int64_t>(d), true);
  }
  return dynamic;
}

// The sharding of a value that has become a tuple of its leaves and, behind them, `sizes` sizes: those are replicated.
void ExtendSharding(Instruction* value, const Shape& before, int64_t sizes) {
  if (!value->sharding || sizes == 0) return;
  hlo::Sharding tuple;
  tuple.kind = hlo::Sharding::Kind::kTuple;
  tuple.elements = value->sharding->kind == hlo::Sharding::Kind::kTuple
                       ? std::move(value->sharding->elements)
                       : std::vector<hlo::Sharding>(static_cast<size_t>(hlo::LeafCount(before)), *value->sharding);
  tuple.elements.resize(tuple.elements.size() + static_cast<size_t>(sizes));
  value->sharding = std::move(tuple);
}

int64_t AddedLeaves(const Shape& packed, const Shape& before) {
  return hlo::LeafCount(packed) - hlo::LeafCount(before);
}

// Builds the lowered computations beside the old ones.
class ModuleLowering {
 public:
  explicit ModuleLowering(hlo::Module& module) : module_(module) {}

  std::unordered_map<Instruction*, Shape> Find() {
    Computation* entry = module_.AddComputation("sizes");
    Builder build(entry);
    std::vector<SizedValue> parameters = EntryParameters(*module_.entry(), entry, build);
    SizedValue root = Lower(*module_.entry(), entry, std::move(parameters));
    entry->set_root(AsInstruction(build, root));
    return std::move(dynamic_shapes_);
  }

  void Run() {
    Computation* old = module_.entry();
    Computation* entry = module_.AddComputation(old->name());
    Builder build(entry);
    std::vector<SizedValue> parameters = EntryParameters(*old, entry, build);
    SizedValue root = Lower(*old, entry, std::move(parameters));
    SetEntryRoot(*old, entry, root);
    std::vector<std::string> names;
    for (const Instruction* parameter : old->parameters()) names.push_back(parameter->name());
    const std::string name = old->name();
    MergeEqualSizes();
    module_.set_entry(entry);
    module_.entry_layout.reset();
    module_.is_scheduled = false;
    module_.RemoveUnreachable();
    // The names by which callers know the parameters.
    for (size_t i = 0; i < names.size(); ++i) {
      entry->parameter(static_cast<int64_t>(i))->set_name(module_.UniqueName(names[i]));
    }
    SetSignature(module_, signature_);
  }

 private:
  std::vector<SizedValue> EntryParameters(const Computation& old, Computation* entry, Builder& build) {
    std::vector<SizedValue> values;
    std::vector<Shape> shapes;
    for (const Instruction* parameter : old.parameters()) {
      Instruction* copy = entry->Add(parameter->CloneWithOperands(StaticShape(parameter->shape()), {}));
      values.push_back(FromInstruction(build, copy));
      shapes.push_back(parameter->shape());
    }
    signature_.parameters = DynamicDimensions(shapes);
    std::vector<SizedValue*> leaves;
    for (SizedValue& value : values) {
      for (SizedValue* leaf : LeavesOf(value)) leaves.push_back(leaf);
    }
    int64_t number = old.parameter_count();
    for (const DimensionOfLeaf& d : signature_.parameters) {
      const std::string name = fmt::format("size_{}_{}", d.leaf, d.dimension);
      Instruction* size = entry->AddParameter(number++, Shape::Scalar(hlo::ElementType::kS32), name);
      size_parameters_.push_back(size);
      const int64_t most = leaves[static_cast<size_t>(d.leaf)]->value->shape().dimension(d.dimension);
      size->frontend_attributes[kMostAttribute] = std::to_string(most);
      leaves[static_cast<size_t>(d.leaf)]->sizes[static_cast<size_t>(d.dimension)] = size;
    }
    return values;
  }

  void SetEntryRoot(const Computation& old, Computation* entry, SizedValue& root) {
    Builder build(entry, old.root());
    Instruction* value = AsInstruction(build, root);
    std::vector<Instruction*> elements = {value};
    const std::vector<SizedValue*> leaves = LeavesOf(root);
    for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
      for (size_t d = 0; d < leaves[leaf]->sizes.size(); ++d) {
        if (leaves[leaf]->sizes[d] == nullptr) continue;
        signature_.results.push_back({static_cast<int64_t>(leaf), static_cast<int64_t>(d)});
        elements.push_back(leaves[leaf]->sizes[d]);
      }
    }
    Instruction* result = signature_.results.empty() ? value : build.Tuple(std::move(elements));
    entry->set_root(result);
    KeepAnnotations(*old.root(), result);
    if (signature_.results.empty()) return;
    for (hlo::AliasEntry& alias : module_.input_output_alias) alias.output.insert(alias.output.begin(), 0);
  }

  // What the old root says of where the results lie; a parameter has its own.
  void KeepAnnotations(const Instruction& old, Instruction* result) const {
    if (result->Is(Opcode::kParameter)) return;
    if (!result->sharding && old.sharding) {
      result->sharding = old.sharding;
      ExtendSharding(result, old.shape(), static_cast<int64_t>(signature_.results.size()));
    }
    result->frontend_attributes.insert(old.frontend_attributes.begin(), old.frontend_attributes.end());
  }

  // Two sizes of one dimension. Of two that the caller gives, the first is used and the second must be equal; others
  // are the program's own to keep equal, and where they are not, what both have is there.
  Instruction* Unify(Builder& build, Instruction* x, Instruction* y) {
    const auto number = [&](Instruction* size) {
      return std::find(size_parameters_.begin(), size_parameters_.end(), size) - size_parameters_.begin();
    };
    const auto a = std::min(number(x), number(y)), b = std::max(number(x), number(y));
    if (b < static_cast<ptrdiff_t>(size_parameters_.size())) {
      const std::pair<int64_t, int64_t> pair{a, b};
      if (std::find(signature_.equal.begin(), signature_.equal.end(), pair) == signature_.equal.end())
        signature_.equal.push_back(pair);
      return size_parameters_[static_cast<size_t>(a)];
    }
    return build.Binary(Opcode::kMinimum, x, y);
  }

  // All uses of sizes that must be equal read the first of them.
  void MergeEqualSizes() {
    std::sort(signature_.equal.begin(), signature_.equal.end());
    std::vector<size_t> first(size_parameters_.size());
    for (size_t i = 0; i < first.size(); ++i) first[i] = i;
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& [a, b] : signature_.equal) {
        const size_t lowest = std::min(first[static_cast<size_t>(a)], first[static_cast<size_t>(b)]);
        changed |= first[static_cast<size_t>(a)] != lowest || first[static_cast<size_t>(b)] != lowest;
        first[static_cast<size_t>(a)] = first[static_cast<size_t>(b)] = lowest;
      }
    }
    for (size_t i = 0; i < first.size(); ++i) {
      if (first[i] != i) size_parameters_[i]->ReplaceAllUsesWith(size_parameters_[first[i]]);
    }
  }

  // Copies `old` into `into`, on these values of its parameters. Returns its root's value.
  SizedValue Lower(const Computation& old, Computation* into, std::vector<SizedValue> parameters) {
    std::unordered_map<const Instruction*, SizedValue> values;
    for (Instruction* op : old.PostOrder()) {
      std::vector<SizedValue*> operands;
      for (const Instruction* operand : op->operands()) operands.push_back(&values.at(operand));
      SizedValue value = op->Is(Opcode::kParameter) ? parameters[static_cast<size_t>(op->parameter_number())]
                                                    : LowerOp(*op, operands, into);
      for (const Instruction* predecessor : op->control_predecessors()) {
        Instruction* before = values.at(predecessor).value;
        if (value.value != nullptr && before != nullptr) value.value->AddControlPredecessor(before);
      }
      if (value.IsSized()) dynamic_shapes_[op] = WithSizes(op->shape(), value);
      values[op] = std::move(value);
    }
    return values.at(old.root());
  }

  SizedValue LowerOp(const Instruction& op, const std::vector<SizedValue*>& operands, Computation* into) {
    Builder build(into, &op);
    if (op.Is(Opcode::kTuple)) {
      SizedValue tuple;
      for (const SizedValue* operand : operands) tuple.elements.push_back(*operand);
      if (tuple.elements.empty()) tuple.value = build.Tuple({});
      return tuple;
    }
    if (op.Is(Opcode::kGetTupleElement)) return operands[0]->elements[static_cast<size_t>(op.tuple_index())];
    if (op.Is(Opcode::kWhile)) return LowerWhile(op, *operands[0], into);
    if (op.Is(Opcode::kConditional)) return LowerConditional(op, operands, into);
    for (SizedValue* operand : operands) AsInstruction(build, *operand);
    const SizeUnifier unify = [this](Builder& b, Instruction* x, Instruction* y) { return Unify(b, x, y); };
    OpLowering at(op, operands, into, unify);
    if (!at.AnySized() && !SpeaksOfSizes(op)) return FromInstruction(build, at.Clone());
    if (op.Is(Opcode::kScan)) {
      return LowerScan(at, [this](const Computation& old, Computation* end, std::vector<SizedValue> parameters) {
        return Lower(old, end, std::move(parameters));
      });
    }
    const LoweringRule rule = LoweringRuleOf(op.opcode());
    if (rule == nullptr) at.Refuse("has no rule for dynamic dimensions");
    return rule(at);
  }

  SizedValue LowerWhile(const Instruction& loop, SizedValue& initial, Computation* into) {
    Carrier carrier(StaticShape(loop.operand(0)->shape()));
    carrier.Include(initial);
    // The body may give a size to what had none; then it starts again with one.
    Computation* body = nullptr;
    for (bool grows = true; grows;) {
      body = module_.AddComputation(loop.while_body()->name());
      Builder build(body, loop.while_body()->root());
      SizedValue root = LowerCallee(*loop.while_body(), body, carrier);
      grows = carrier.Include(root);
      body->set_root(carrier.Pack(build, root));
    }
    Computation* condition = module_.AddComputation(loop.while_condition()->name());
    Builder build_condition(condition);
    SizedValue test = LowerCallee(*loop.while_condition(), condition, carrier);
    condition->set_root(AsInstruction(build_condition, test));

    Builder build(into, &loop);
    Instruction* packed = carrier.Pack(build, initial);
    auto lowered = loop.CloneWithOperands(carrier.PackedShape(), {packed});
    lowered->set_called(0, condition);
    lowered->set_called(1, body);
    ExtendSharding(lowered.get(), loop.shape(), AddedLeaves(lowered->shape(), loop.shape()));
    return carrier.Unpack(build, into->Add(std::move(lowered)));
  }

  SizedValue LowerCallee(const Computation& old, Computation* into, const Carrier& carrier) {
    Builder build(into);
    Instruction* parameter = into->AddParameter(0, carrier.PackedShape(), old.parameter(0)->name());
    parameter->sharding = old.parameter(0)->sharding;
    ExtendSharding(parameter, old.parameter(0)->shape(), AddedLeaves(parameter->shape(), old.parameter(0)->shape()));
    return Lower(old, into, {carrier.Unpack(build, parameter)});
  }

  SizedValue LowerConditional(const Instruction& conditional, const std::vector<SizedValue*>& operands,
                              Computation* into) {
    Builder build(into, &conditional);
    std::vector<Instruction*> packed = {AsInstruction(build, *operands[0])};
    std::vector<Computation*> branches;
    std::vector<SizedValue> roots;
    Carrier result(StaticShape(conditional.shape()));
    for (size_t i = 0; i + 1 < operands.size(); ++i) {
      const Computation& old = *conditional.called(static_cast<int64_t>(i));
      Carrier argument(StaticShape(conditional.operand(static_cast<int64_t>(i) + 1)->shape()));
      argument.Include(*operands[i + 1]);
      packed.push_back(argument.Pack(build, *operands[i + 1]));
      branches.push_back(module_.AddComputation(old.name()));
      roots.push_back(LowerCallee(old, branches.back(), argument));
      result.Include(roots.back());
    }
    auto lowered = conditional.CloneWithOperands(result.PackedShape(), std::move(packed));
    for (size_t i = 0; i < branches.size(); ++i) {
      Builder in_branch(branches[i]);
      branches[i]->set_root(result.Pack(in_branch, roots[i]));
      lowered->set_called(static_cast<int64_t>(i), branches[i]);
    }
    ExtendSharding(lowered.get(), conditional.shape(), AddedLeaves(lowered->shape(), conditional.shape()));
    return result.Unpack(build, into->Add(std::move(lowered)));
  }

  hlo::Module& module_;
  SizeSignature signature_;
  std::vector<Instruction*> size_parameters_;
  std::unordered_map<Instruction*, Shape> dynamic_shapes_;  // of the old instructions
};

}  // namespace

std::unordered_map<Instruction*, Shape> FindDynamicShapes(hlo::Module& module) { return ModuleLowering(module).Find(); }

bool LowerDynamicDimensions::Run(hlo::Module& module, PassContext& context) {
  if (!IsDynamic(module)) return false;
  // These count elements or cut results off: said in simpler ops they follow the sizes.
  ExpandBatchNorm().Run(module, context);
  ExpandTopK().Run(module, context);
  // Masks are of one type with what they mask.
  MatchReducerTypes().Run(module, context);
  ModuleLowering(module).Run();
  return true;
}

}  // namespace hlorun::passes
