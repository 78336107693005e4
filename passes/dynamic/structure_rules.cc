// Lowering of ops whose dimensions stay what they are, are permuted, spread or reduced.
#include <algorithm>

#include "hlo/error.h"
#include "passes/dynamic/op_lowering.h"
#include "passes/expand/reducer_identity.h"
#include "passes/spmd/annotations.h"

namespace hlorun::passes {

using hlo::Contains;
using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

namespace {

// Copies `computation` onto `arguments` in the same computation.
std::vector<Instruction*> Inline(const hlo::Computation& computation, hlo::Computation* into,
                                 const std::vector<Instruction*>& arguments) {
  hlo::InstructionMap map;
  for (size_t i = 0; i < arguments.size(); ++i) map[computation.parameter(static_cast<int64_t>(i))] = arguments[i];
  Instruction* root = computation.CloneInto(into, map);
  if (!root->Is(Opcode::kTuple)) return {root};
  return root->operands();
}

// (accumulators, seen, values, inside): values are combined where inside, and the first of them is taken as it is where
// nothing was seen before. So padding changes nothing whatever the reducer does.
hlo::Computation* ReducerOfValid(const hlo::Computation& reducer) {
  hlo::Module* module = reducer.module();
  hlo::Computation* computation = module->AddComputation(reducer.name() + "_valid");
  const int64_t count = reducer.parameter_count() / 2;
  const Shape pred = Shape::Scalar(hlo::ElementType::kPred);
  std::vector<Instruction*> accumulators, values;
  for (int64_t i = 0; i < count; ++i)
    accumulators.push_back(computation->AddParameter(i, reducer.parameter(i)->shape(), "a"));
  Instruction* seen = computation->AddParameter(count, pred, "seen");
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(computation->AddParameter(count + 1 + i, reducer.parameter(count + i)->shape(), "x"));
  }
  Instruction* inside = computation->AddParameter(2 * count + 1, pred, "inside");
  std::vector<Instruction*> arguments = accumulators;
  arguments.insert(arguments.end(), values.begin(), values.end());
  std::vector<Instruction*> combined = Inline(reducer, computation, arguments);
  hlo::Builder build(computation);
  std::vector<Instruction*> results;
  for (size_t i = 0; i < combined.size(); ++i) {
    results.push_back(build.Select(inside, build.Select(seen, combined[i], values[i]), accumulators[i]));
  }
  results.push_back(build.Binary(Opcode::kOr, seen, inside));
  computation->set_root(build.Tuple(results));
  return computation;
}

}  // namespace

SizedValue LowerElementwise(OpLowering& at) {
  if (at.op.shape().IsTuple()) at.Refuse("of several arrays has no rule for dynamic dimensions");
  SizedValue result = at.Unsized(at.Clone());
  for (int64_t i = 0; i < at.operand_count(); ++i) {
    if (at.operand(i).sizes.size() != result.sizes.size()) continue;
    for (size_t d = 0; d < result.sizes.size(); ++d)
      result.sizes[d] = at.Unify(result.sizes[d], at.operand(i).sizes[d]);
  }
  return result;
}

// Types of other widths have the parts of an element, or of a result, in a last dimension of their own.
SizedValue LowerBitcastConvert(OpLowering& at) {
  SizedValue result = at.Unsized(at.Clone());
  std::vector<Instruction*> sizes = at.operand(0).sizes;
  if (sizes.size() > result.sizes.size() && sizes.back() != nullptr)
    at.Refuse("of elements with a dynamic number of parts has no rule");
  sizes.resize(result.sizes.size(), nullptr);
  result.sizes = sizes;
  return result;
}

SizedValue LowerBroadcast(OpLowering& at) {
  SizedValue result = at.Unsized(at.Clone());
  const std::vector<int64_t>& dimensions = at.op.dimensions();
  for (size_t i = 0; i < dimensions.size(); ++i) {
    // Of a dimension that is spread over more than its own elements nothing is padding.
    if (at.OperandShape(0).dimensions()[i] == at.op.shape().dimension(dimensions[i])) {
      result.sizes[static_cast<size_t>(dimensions[i])] = at.operand(0).sizes[i];
    }
  }
  return result;
}

SizedValue LowerTranspose(OpLowering& at) {
  SizedValue result = at.Unsized(at.Clone());
  for (size_t i = 0; i < result.sizes.size(); ++i) result.sizes[i] = at.operand(0).size(at.op.dimensions()[i]);
  return result;
}

SizedValue LowerReduce(OpLowering& at) {
  const int64_t count = at.operand_count() / 2;
  const std::vector<int64_t>& reduced = at.op.dimensions();
  std::vector<Instruction*> sizes, kept;
  for (int64_t d = 0; d < at.OperandShape(0).rank(); ++d) {
    Instruction* size = nullptr;
    for (int64_t i = 0; i < count; ++i) size = at.Unify(size, at.operand(i).size(d));
    sizes.push_back(size);
    if (!Contains(reduced, d)) kept.push_back(size);
  }
  const std::vector<std::vector<Instruction*>> result_sizes(static_cast<size_t>(count), kept);
  const bool masks =
      std::any_of(reduced.begin(), reduced.end(), [&](int64_t d) { return sizes[static_cast<size_t>(d)] != nullptr; });
  if (!masks) return at.FromLeaves(at.Clone(), result_sizes);

  std::vector<Instruction*> operands = at.Values();
  const std::optional<Opcode> opcode = hlo::ReducerOpcode(*at.op.called());
  if (opcode && count == 1) {
    Instruction* identity = at.build.Constant(ReducerIdentity(*opcode, at.OperandShape(0).element_type()));
    for (const int64_t d : reduced) {
      if (sizes[static_cast<size_t>(d)] != nullptr)
        operands[0] = at.MaskDimension(operands[0], d, sizes[static_cast<size_t>(d)], identity);
    }
    return at.FromLeaves(at.Clone(std::move(operands)), result_sizes);
  }
  Instruction* inside = nullptr;
  for (const int64_t d : reduced) {
    if (sizes[static_cast<size_t>(d)] == nullptr) continue;
    Instruction* here = at.Inside(at.OperandShape(0).dimensions(), d, sizes[static_cast<size_t>(d)]);
    inside = inside == nullptr ? here : at.build.Binary(Opcode::kAnd, inside, here);
  }
  const auto middle = operands.begin() + count;
  std::vector<Instruction*> arrays(operands.begin(), middle), initial(middle, operands.end());
  arrays.push_back(inside);
  initial.push_back(at.build.ScalarConstant(hlo::ElementType::kPred, int64_t{1}));
  Instruction* all = at.build.Reduce(arrays, initial, reduced, ReducerOfValid(*at.op.called()));
  SizedValue result{nullptr, {}, {}};
  for (int64_t i = 0; i < count; ++i) result.elements.push_back({at.build.GetTupleElement(all, i), kept, {}});
  if (!at.op.shape().IsTuple()) return result.elements[0];
  return result;
}

SizedValue LowerDot(OpLowering& at) {
  const auto& dot = at.op.As<hlo::attr::Dot>();
  const SizedValue &lhs = at.operand(0), &rhs = at.operand(1);
  std::vector<Instruction*> operands = at.Values();
  for (size_t i = 0; i < dot.lhs_contracting.size(); ++i) {
    Instruction* size = at.Unify(lhs.size(dot.lhs_contracting[i]), rhs.size(dot.rhs_contracting[i]));
    if (size == nullptr) continue;
    // Both: zero times what is no number is none.
    operands[0] =
        at.MaskDimension(operands[0], dot.lhs_contracting[i], size, at.Zero(at.OperandShape(0).element_type()));
    operands[1] =
        at.MaskDimension(operands[1], dot.rhs_contracting[i], size, at.Zero(at.OperandShape(1).element_type()));
  }
  SizedValue result = at.Unsized(at.Clone(std::move(operands)));
  size_t next = 0;
  for (size_t i = 0; i < dot.lhs_batch.size(); ++i) {
    result.sizes[next++] = at.Unify(lhs.size(dot.lhs_batch[i]), rhs.size(dot.rhs_batch[i]));
  }
  for (int64_t d = 0; d < at.OperandShape(0).rank(); ++d) {
    if (!Contains(dot.lhs_batch, d) && !Contains(dot.lhs_contracting, d)) result.sizes[next++] = lhs.size(d);
  }
  for (int64_t d = 0; d < at.OperandShape(1).rank(); ++d) {
    if (!Contains(dot.rhs_batch, d) && !Contains(dot.rhs_contracting, d)) result.sizes[next++] = rhs.size(d);
  }
  return result;
}

// Padding goes to the end whatever the comparator says: one more operand tells which elements are there.
SizedValue LowerSort(OpLowering& at) {
  const int64_t count = at.operand_count();
  const int64_t along = at.op.As<hlo::attr::Sort>().dimension;
  std::vector<Instruction*> sizes = at.operand(0).sizes;
  for (int64_t i = 1; i < count; ++i) {
    for (size_t d = 0; d < sizes.size(); ++d) sizes[d] = at.Unify(sizes[d], at.operand(i).sizes[d]);
  }
  const std::vector<std::vector<Instruction*>> result_sizes(static_cast<size_t>(count), sizes);
  Instruction* size = sizes[static_cast<size_t>(along)];
  if (size == nullptr) return at.FromLeaves(at.Clone(), result_sizes);

  const hlo::Computation& order = *at.op.called();
  hlo::Computation* valid_first = at.op.module()->AddComputation(order.name() + "_valid");
  std::vector<Instruction*> arguments;
  for (int64_t i = 0; i < order.parameter_count(); ++i) {
    arguments.push_back(valid_first->AddParameter(i, order.parameter(i)->shape(), order.parameter(i)->name()));
  }
  const Shape pred = Shape::Scalar(hlo::ElementType::kPred);
  Instruction* a = valid_first->AddParameter(2 * count, pred, "valid_a");
  Instruction* b = valid_first->AddParameter(2 * count + 1, pred, "valid_b");
  Instruction* before = Inline(order, valid_first, arguments)[0];
  hlo::Builder build(valid_first);
  valid_first->set_root(build.Binary(Opcode::kAnd, a, build.Binary(Opcode::kOr, build.Unary(Opcode::kNot, b), before)));

  std::vector<Instruction*> operands = at.Values();
  operands.push_back(at.Inside(at.OperandShape(0).dimensions(), along, size));
  Instruction* sorted = at.build.Make(Opcode::kSort, std::move(operands), at.op.As<hlo::attr::Sort>(), {valid_first});
  SizedValue result{nullptr, {}, {}};
  for (int64_t i = 0; i < count; ++i) result.elements.push_back({at.build.GetTupleElement(sorted, i), sizes, {}});
  if (!at.op.shape().IsTuple()) return result.elements[0];
  return result;
}

SizedValue LowerGetDimensionSize(OpLowering& at) { return {at.SizeOrBound(0, at.op.dimensions()[0]), {}, {}}; }

SizedValue LowerSetDimensionSize(OpLowering& at) {
  const int64_t d = at.op.dimensions()[0];
  SizedValue result = at.operand(0);
  Instruction* before = result.size(d);
  Instruction* size = at.operand(1).value;
  const int64_t bound = at.op.shape().dimension(d);
  const bool is_static = !at.op.shape().is_dynamic_dimension(d);
  if (before == size && !is_static) return result;
  // What a larger size adds is zero.
  if (before != nullptr)
    result.value = at.MaskDimension(result.value, d, before, at.Zero(result.value->shape().element_type()));
  result.sizes[static_cast<size_t>(d)] = is_static ? nullptr : at.Clamp(size, 0, bound);
  return result;
}

SizedValue LowerCustomCall(OpLowering& at) {
  const std::string& target = at.op.As<hlo::attr::CustomCall>().target;
  if (target == "PadToStatic") {
    SizedValue result;
    result.elements.push_back(at.Unsized(at.operand(0).value));
    for (int64_t d = 0; d < at.OperandShape(0).rank(); ++d) result.elements.push_back({at.SizeOrBound(0, d), {}, {}});
    return result;
  }
  if (target == "SliceToDynamic") {
    SizedValue result = at.Unsized(at.operand(0).value);
    for (int64_t d = 0; d < at.OperandShape(0).rank() && d + 1 < at.operand_count(); ++d) {
      const int64_t bound = at.op.shape().dimension(d);
      if (at.op.shape().is_dynamic_dimension(d))
        result.sizes[static_cast<size_t>(d)] = at.Clamp(at.operand(d + 1).value, 0, bound);
    }
    return result;
  }
  if (spmd::IsShardingConstraint(at.op)) return {at.Clone(), at.operand(0).sizes, {}};
  if (at.AnySized()) at.Refuse("\"" + target + "\" has no rule for dynamic dimensions; give it arrays of static shape");
  return at.FromLeaves(at.Clone(), {{}});
}

// Ops on the last one or two dimensions of their operands, the same for each index of those before.
SizedValue LowerBatched(OpLowering& at) {
  const int64_t inner = at.op.Is(Opcode::kFft) ? static_cast<int64_t>(at.op.As<hlo::attr::Fft>().length.size()) : 2;
  SizedValue result = at.Unsized(at.Clone());
  for (int64_t i = 0; i < at.operand_count(); ++i) {
    for (int64_t d = 0; d < at.OperandShape(i).rank(); ++d) {
      if (at.operand(i).size(d) == nullptr) continue;
      if (d >= at.OperandShape(i).rank() - inner)
        at.Refuse("works on whole dimensions, but dimension " + std::to_string(d) + " is dynamic");
      auto& size = result.sizes[static_cast<size_t>(d)];
      size = at.Unify(size, at.operand(i).size(d));
    }
  }
  return result;
}

}  // namespace hlorun::passes
