#include "passes/fusion/sink_reshapes.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "hlo/builder.h"
#include "hlo/error.h"

namespace hlorun::passes {
namespace {

using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;

// Neighbouring dimensions of two shapes of the same elements that hold the same elements: [6272,768] and [32,196,768]
// have the groups {0} and {0,1}, {1} and {2}.
struct Group {
  int64_t from_begin, from_end, to_begin, to_end;
};

std::vector<Group> CommonGroups(const Dims& from, const Dims& to) {
  std::vector<Group> groups;
  const auto from_rank = static_cast<int64_t>(from.size()), to_rank = static_cast<int64_t>(to.size());
  int64_t i = 0, j = 0;
  while (i < from_rank || j < to_rank) {
    Group group{i, i, j, j};
    int64_t x = 1, y = 1;
    do {
      if (j == to_rank || (i < from_rank && x <= y)) {
        x *= from[static_cast<size_t>(i++)];
      } else {
        y *= to[static_cast<size_t>(j++)];
      }
    } while (x != y && (i < from_rank || j < to_rank));
    // Ones at the end belong to the group before them.
    while (i < from_rank && from[static_cast<size_t>(i)] == 1) ++i;
    while (j < to_rank && to[static_cast<size_t>(j)] == 1) ++j;
    group.from_end = i;
    group.to_end = j;
    groups.push_back(group);
  }
  return groups;
}

// The dimensions of `to` that hold the same as `dimensions` of `from`, where those are whole groups.
std::optional<std::vector<int64_t>> MapWholeGroups(const std::vector<int64_t>& dimensions, const Dims& from,
                                                   const Dims& to) {
  std::vector<int64_t> mapped;
  for (const Group& group : CommonGroups(from, to)) {
    bool any = false, all = true;
    for (int64_t d = group.from_begin; d < group.from_end; ++d) {
      const bool named = std::find(dimensions.begin(), dimensions.end(), d) != dimensions.end();
      any |= named && from[static_cast<size_t>(d)] != 1;
      all &= named || from[static_cast<size_t>(d)] == 1;
    }
    if (any && !all) return std::nullopt;
    for (int64_t d = group.to_begin; any && d < group.to_end; ++d) mapped.push_back(d);
  }
  return mapped;
}

Dims Select(const Dims& dims, const std::vector<int64_t>& numbers) {
  Dims selected;
  for (const int64_t d : numbers) selected.push_back(dims[static_cast<size_t>(d)]);
  return selected;
}

class Sinker {
 public:
  explicit Sinker(hlo::Computation& computation) : computation_(computation) {}

  bool Run() {
    bool changed = false;
    for (Instruction* instruction : computation_.PostOrder()) {
      if (instruction->Is(Opcode::kDot) || instruction->Is(Opcode::kConvolution)) sources_.insert(instruction);
      changed |= instruction->Is(Opcode::kReduce) ? SinkReduce(instruction) : SinkElementwise(instruction);
    }
    if (changed) JoinReshapes();
    return changed;
  }

 private:
  // The operand of `reshape`, when it is what this pass moves reshapes away from.
  const Instruction* SourceOf(const Instruction* reshape) const {
    if (!reshape->Is(Opcode::kReshape) || !reshape->shape().IsStatic()) return nullptr;
    const Instruction* source = reshape->operand(0);
    return sources_.contains(source) ? source : nullptr;
  }

  bool SinkElementwise(Instruction* instruction) {
    if (!instruction->Has(hlo::kElementwise) || !instruction->shape().IsArray()) return false;
    const auto& operands = instruction->operands();
    if (std::any_of(operands.begin(), operands.end(), [&](const Instruction* o) { return sources_.contains(o); })) {
      sources_.insert(instruction);
      return LiftReshapes(instruction);
    }
    const auto reshape = std::find_if(operands.begin(), operands.end(), [&](Instruction* o) { return SourceOf(o); });
    if (reshape == operands.end()) return false;
    const Dims dims = (*reshape)->operand(0)->shape().dimensions();
    for (const Instruction* operand : operands) {
      if (!operand->shape().SameDimensions(instruction->shape()) || !CanReshape(operand, dims))
        return LiftScaledSources(instruction);
    }
    std::vector<Instruction*> sunk;
    sunk.reserve(operands.size());
    for (Instruction* operand : operands) sunk.push_back(Reshaped(operand, dims, instruction));
    Instruction* result = CloneIn(dims, *instruction, std::move(sunk), instruction);
    sources_.insert(result);
    ReplaceByReshapeOf(result, instruction);
    return true;
  }

  // Operands that are reshapes of something computed for them alone are computed in the dimensions they are read in.
  bool LiftReshapes(Instruction* instruction) {
    bool changed = false;
    const Dims dims = instruction->shape().dimensions();
    for (int64_t i = 0; i < instruction->operand_count(); ++i) {
      Instruction* reshape = instruction->operand(i);
      if (!reshape->Is(Opcode::kReshape) || reshape->shape().dimensions() != dims) continue;
      Instruction* computed = reshape->operand(0);
      if (!computed->Is(Opcode::kBroadcast) && !IsPassedThrough(computed)) continue;
      if (!CanReshape(computed, dims)) continue;
      instruction->ReplaceOperand(i, Reshaped(computed, dims, instruction));
      changed = true;
    }
    return changed;
  }

  // Where a reshape can sink no further, what has been scaled in front of it is scaled behind it instead: scores, to
  // which biases of a part of their dimensions are added, are an array in memory then.
  bool LiftScaledSources(Instruction* instruction) {
    bool changed = false;
    for (int64_t i = 0; i < instruction->operand_count(); ++i) {
      const Instruction* reshape = instruction->operand(i);
      if (SourceOf(reshape) == nullptr || reshape->users().size() > 1) continue;
      if (!reshape->shape().SameDimensions(instruction->shape()) || instruction->OperandIndex(reshape) != i) continue;
      Instruction* scaled = ScaledIn(reshape->shape().dimensions(), *reshape->operand(0), instruction);
      if (scaled == nullptr) continue;
      for (int64_t slot = i; slot < instruction->operand_count(); ++slot) {
        if (instruction->operand(slot) == reshape) instruction->ReplaceOperand(slot, scaled);
      }
      changed = true;
    }
    return changed;
  }

  // `source` once more, of its one array in dimensions `dims`; null where it is more than that array, for one reader,
  // and single numbers, or more than cheap.
  Instruction* ScaledIn(const Dims& dims, const Instruction& source, Instruction* before) {
    if (!IsPassedThrough(&source) || source.Has(hlo::kExpensive)) return nullptr;
    const auto is_number = [](const Instruction* operand) {
      return operand->Is(Opcode::kBroadcast) && operand->operand(0)->shape().ElementCount() == 1;
    };
    const auto& inputs = source.operands();
    const auto numbers = std::count_if(inputs.begin(), inputs.end(), is_number);
    if (numbers == 0 || numbers + 1 != std::ssize(inputs)) return nullptr;
    hlo::Builder builder(&computation_, &source);
    builder.before = before;
    std::vector<Instruction*> operands;
    operands.reserve(inputs.size());
    for (Instruction* input : inputs)
      operands.push_back(is_number(input) ? Reshaped(input, dims, before) : Direct(input, dims, builder));
    return CloneIn(dims, source, std::move(operands), before);
  }

  // What a reduction reads as it is computed from it: a product's result, or what is read in its own dimensions, too
  // (a softmax over [h, w] as one dimension, which is then one row kernel).
  const Instruction* ReducedSourceOf(const Instruction* operand) const {
    if (const Instruction* source = SourceOf(operand)) return source;
    if (!operand->Is(Opcode::kReshape) || !operand->shape().IsStatic()) return nullptr;
    const Instruction* source = operand->operand(0);
    const Instruction* read = source->Is(Opcode::kConvert) ? source->operand(0) : source;  // bf16 is summed in f32
    const auto is_read = [&](const Instruction* value) {
      return std::any_of(value->users().begin(), value->users().end(), [&](const Instruction* reader) {
        return reader != source && reader->Has(hlo::kElementwise) && reader->shape().SameDimensions(value->shape());
      });
    };
    return source->Has(hlo::kElementwise) && is_read(read) && !is_read(operand) ? source : nullptr;
  }

  bool SinkReduce(Instruction* reduce) {
    if (!reduce->shape().IsArray()) return false;
    if (sources_.contains(reduce->operand(0))) sources_.insert(reduce);
    const Instruction* source = ReducedSourceOf(reduce->operand(0));
    if (source == nullptr) return false;
    const auto dimensions =
        MapWholeGroups(reduce->dimensions(), reduce->operand(0)->shape().dimensions(), source->shape().dimensions());
    if (!dimensions.has_value() || dimensions->empty()) return false;
    hlo::Builder builder(&computation_, reduce);
    builder.before = reduce;
    Instruction* result =
        builder.Reduce({reduce->operand(0)->operand(0)}, {reduce->operand(1)}, *dimensions, reduce->called());
    sources_.insert(result);
    ReplaceByReshapeOf(result, reduce);
    return true;
  }

  // Computed for this one reader: its operands are reshaped instead.
  static bool IsPassedThrough(const Instruction* operand) {
    const auto& inputs = operand->operands();
    return operand->Has(hlo::kElementwise) && operand->users().size() == 1 && !operand->IsRoot() &&
           std::all_of(inputs.begin(), inputs.end(),
                       [&](const Instruction* input) { return input->shape().SameDimensions(operand->shape()); });
  }

  static bool CanReshape(const Instruction* operand, const Dims& dims) {
    if (!operand->shape().IsStatic()) return false;
    if (IsPassedThrough(operand)) {
      const auto& inputs = operand->operands();
      return std::all_of(inputs.begin(), inputs.end(), [&](const Instruction* i) { return CanReshape(i, dims); });
    }
    if (!operand->Is(Opcode::kBroadcast)) return true;
    return MapWholeGroups(operand->dimensions(), operand->shape().dimensions(), dims).has_value() &&
           std::is_sorted(operand->dimensions().begin(), operand->dimensions().end());
  }

  Instruction* Reshaped(Instruction* operand, const Dims& dims, Instruction* before) {
    hlo::Builder builder(&computation_, operand);
    builder.before = before;
    if (operand->Is(Opcode::kBroadcast)) {
      const auto kept = MapWholeGroups(operand->dimensions(), operand->shape().dimensions(), dims);
      HLORUN_CHECK(kept.has_value());  // CanReshape
      return builder.Broadcast(Direct(operand->operand(0), Select(dims, *kept), builder), dims, *kept);
    }
    if (IsPassedThrough(operand)) {
      std::vector<Instruction*> inputs;
      inputs.reserve(operand->operands().size());
      for (Instruction* input : operand->operands()) inputs.push_back(Reshaped(input, dims, before));
      return CloneIn(dims, *operand, std::move(inputs), before);
    }
    return Direct(operand, dims, builder);
  }

  // An elementwise op once more, of operands in dimensions `dims`.
  Instruction* CloneIn(const Dims& dims, const Instruction& op, std::vector<Instruction*> operands,
                       Instruction* before) {
    const hlo::Shape shape(op.shape().element_type(), dims);
    Instruction* clone = computation_.Add(op.CloneWithOperands(shape, std::move(operands)), before);
    clone->sharding.reset();  // it tiles other dimensions
    return clone;
  }

  // reshape(x), without a reshape of a reshape, and without one that changes nothing.
  static Instruction* Direct(Instruction* x, const Dims& dims, hlo::Builder& builder) {
    while (x->Is(Opcode::kReshape) && x->shape().dimensions() != dims) x = x->operand(0);
    return x->shape().dimensions() == dims ? x : builder.Reshape(x, dims);
  }

  // What moved leaves reshapes of reshapes behind.
  void JoinReshapes() {
    for (Instruction* instruction : computation_.PostOrder()) {
      if (!instruction->Is(Opcode::kReshape) || !instruction->operand(0)->Is(Opcode::kReshape)) continue;
      hlo::Builder builder(&computation_, instruction);
      builder.before = instruction;
      Instruction* direct = Direct(instruction->operand(0)->operand(0), instruction->shape().dimensions(), builder);
      if (direct->shape().SameAs(instruction->shape())) computation_.Replace(instruction, direct);
    }
  }

  void ReplaceByReshapeOf(Instruction* result, Instruction* old) {
    computation_.ReplaceWithNew(
        old, std::make_unique<Instruction>(Opcode::kReshape, old->shape(), std::vector<Instruction*>{result},
                                           hlo::attr::Reshape{}));
  }

  hlo::Computation& computation_;
  // Products, what was computed from them in their dimensions, and reductions that were moved.
  std::unordered_set<const Instruction*> sources_;
};

}  // namespace

bool SinkReshapes::Run(hlo::Module& module, PassContext&) {
  bool changed = false;
  for (hlo::Computation* computation : module.ControlComputations()) changed |= Sinker(*computation).Run();
  return changed;
}

}  // namespace hlorun::passes
