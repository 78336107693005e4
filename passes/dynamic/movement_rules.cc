// Lowering of ops that move elements along a dimension: their places follow the size, not the bound.
#include <algorithm>

#include "passes/dynamic/op_lowering.h"

namespace hlorun::passes {

using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;

namespace {

// low, high and interior padding of one dimension.
hlo::PaddingDimension HighOnly(int64_t high) { return {0, high, 0}; }

std::vector<hlo::PaddingDimension> PadAt(int64_t rank, int64_t d, hlo::PaddingDimension padding) {
  std::vector<hlo::PaddingDimension> all(static_cast<size_t>(rank));
  all[static_cast<size_t>(d)] = padding;
  return all;
}

// Where a slice starts in dimension d, s32: starts are operands from `first` on, or the elements of one.
Instruction* StartOf(OpLowering& at, int64_t first, int64_t d) {
  Instruction* starts = at.operand(first).value;
  if (starts->shape().rank() == 0) return at.AsS32(at.operand(first + d).value);
  return at.AsS32(at.build.Reshape(at.build.Slice(starts, {d}, {d + 1}, {1}), {}));
}

}  // namespace

SizedValue LowerSlice(OpLowering& at) {
  const auto& slice = at.op.As<hlo::attr::Slice>();
  std::vector<Instruction*> sizes(slice.starts.size(), nullptr);
  Instruction* x = at.operand(0).value;
  for (size_t d = 0; d < slice.starts.size(); ++d) {
    Instruction* size = at.operand(0).sizes[d];
    if (size == nullptr) continue;
    if (!at.op.shape().is_dynamic_dimension(static_cast<int64_t>(d))) {
      // A part of static size: what it asks for beyond the size is zero.
      x = at.MaskDimension(x, static_cast<int64_t>(d), size, at.Zero(x->shape().element_type()));
      continue;
    }
    Instruction* limit = at.AtMost(size, slice.limits[d]);
    sizes[d] = at.Divide(at.AtLeast(at.AddInt(limit, slice.strides[d] - 1 - slice.starts[d]), 0), slice.strides[d]);
  }
  return {at.Clone({x}), sizes, {}};
}

// Elements beyond the size become the padding value, which then starts there.
SizedValue LowerPad(OpLowering& at) {
  const auto& padding = at.op.As<hlo::attr::Pad>().padding;
  std::vector<Instruction*> sizes(padding.size(), nullptr);
  Instruction* x = at.operand(0).value;
  for (size_t d = 0; d < padding.size(); ++d) {
    Instruction* size = at.operand(0).sizes[d];
    if (size == nullptr) continue;
    const hlo::PaddingDimension& p = padding[d];
    if (p != hlo::PaddingDimension{}) x = at.MaskDimension(x, static_cast<int64_t>(d), size, at.operand(1).value);
    Instruction* spread =
        p.interior == 0 ? size : at.AtLeast(at.AddInt(at.Multiply(size, p.interior + 1), -p.interior), 0);
    sizes[d] =
        p.low + p.high < 0 ? at.AtLeast(at.AddInt(spread, p.low + p.high), 0) : at.AddInt(spread, p.low + p.high);
  }
  return {at.Clone({x, at.operand(1).value}), sizes, {}};
}

// Reversed, the padding comes first: what follows it is moved to the front.
SizedValue LowerReverse(OpLowering& at) {
  Instruction* x = at.Clone();
  const Dims bound = x->shape().dimensions();
  for (const int64_t d : at.op.dimensions()) {
    Instruction* size = at.operand(0).size(d);
    if (size == nullptr) continue;
    const int64_t n = bound[static_cast<size_t>(d)];
    x = at.build.Pad(x, at.Zero(x->shape().element_type()), PadAt(x->shape().rank(), d, HighOnly(n)));
    std::vector<Instruction*> starts(bound.size(), at.Int(0));
    starts[static_cast<size_t>(d)] = at.Subtract(at.Int(n), size);
    x = at.build.DynamicSlice(x, starts, bound);
  }
  return {x, at.operand(0).sizes, {}};
}

// Each operand is written at the end of those before it, over their padding.
SizedValue LowerConcatenate(OpLowering& at) {
  const int64_t along = at.op.dimensions()[0];
  SizedValue result = at.Unsized(nullptr == at.operand(0).value ? nullptr : at.operand(0).value);
  for (int64_t d = 0; d < at.op.shape().rank(); ++d) {
    if (d == along) continue;
    auto& size = result.sizes[static_cast<size_t>(d)];
    for (int64_t i = 0; i < at.operand_count(); ++i) size = at.Unify(size, at.operand(i).size(d));
  }
  // Only the last may end early for the plain op to be right.
  bool in_place = true;
  int64_t before_last = 0;
  for (int64_t i = 0; i + 1 < at.operand_count(); ++i) {
    in_place &= at.operand(i).size(along) == nullptr;
    before_last += at.OperandShape(i).dimension(along);
  }
  Instruction* last = at.operand(at.operand_count() - 1).size(along);
  if (in_place) {
    result.value = at.Clone();
    result.sizes[static_cast<size_t>(along)] = last == nullptr ? nullptr : at.AddInt(last, before_last);
    return result;
  }
  const hlo::Shape shape = StaticShape(at.op.shape());
  Instruction* whole = at.build.Broadcast(at.Zero(shape.element_type()), shape.dimensions(), {});
  Instruction* end = at.Int(0);
  for (int64_t i = 0; i < at.operand_count(); ++i) {
    std::vector<Instruction*> starts(static_cast<size_t>(shape.rank()), at.Int(0));
    starts[static_cast<size_t>(along)] = end;
    whole = at.build.DynamicUpdateSlice(whole, at.operand(i).value, starts);
    end = at.Add(end, at.SizeOrBound(i, along));
  }
  result.value = whole;
  result.sizes[static_cast<size_t>(along)] = end;
  return result;
}

// Starts clamp to the size, so that the slice stays inside.
SizedValue LowerDynamicSlice(OpLowering& at) {
  const SizedValue& x = at.operand(0);
  std::vector<Instruction*> operands = {x.value};
  std::vector<Instruction*> sizes(x.sizes.size(), nullptr);
  for (int64_t d = 0; d < at.OperandShape(0).rank(); ++d) {
    operands.push_back(StartOf(at, 1, d));
    Instruction* size = x.size(d);
    if (size == nullptr) continue;
    const int64_t taken = at.op.shape().dimension(d);
    if (at.op.shape().is_dynamic_dimension(d)) {
      sizes[static_cast<size_t>(d)] = size;
      continue;
    }
    Instruction*& start = operands.back();
    start = at.build.Binary(Opcode::kMinimum, start, at.AtLeast(at.AddInt(size, -taken), 0));
    operands[0] = at.MaskDimension(operands[0], d, size, at.Zero(operands[0]->shape().element_type()));
  }
  return {at.Clone(std::move(operands)), sizes, {}};
}

// An update of dynamic size is written with its padding to an array that is larger by its bound; then only the places
// of the update's own elements are taken from it.
SizedValue LowerDynamicUpdateSlice(OpLowering& at) {
  const SizedValue &x = at.operand(0), &update = at.operand(1);
  const hlo::Shape shape = x.value->shape(), part = update.value->shape();
  SizedValue result = at.Unsized(x.value);
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (x.size(d) != nullptr || at.op.shape().is_dynamic_dimension(d))
      result.sizes[static_cast<size_t>(d)] = at.Unify(x.size(d), nullptr);
  }
  std::vector<Instruction*> starts;
  std::vector<hlo::PaddingDimension> room(static_cast<size_t>(shape.rank()));
  Instruction* inside = nullptr;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    Instruction* start = StartOf(at, 2, d);
    Instruction* last = at.AtLeast(at.Subtract(at.SizeOrBound(0, d), at.SizeOrBound(1, d)), 0);
    start = at.AtLeast(at.build.Binary(Opcode::kMinimum, start, last), 0);
    starts.push_back(start);
    if (update.size(d) == nullptr) continue;
    room[static_cast<size_t>(d)].high = part.dimension(d);
    Instruction* iota = at.build.Iota(hlo::Shape(hlo::ElementType::kS32, shape.dimensions()), d);
    const auto spread = [&](Instruction* s) { return at.build.Broadcast(s, shape.dimensions(), {}); };
    Instruction* here =
        at.build.Binary(Opcode::kAnd, at.build.Compare(iota, spread(start), hlo::ComparisonDirection::kGe),
                        at.build.Compare(iota, spread(at.Add(start, update.size(d))), hlo::ComparisonDirection::kLt));
    inside = inside == nullptr ? here : at.build.Binary(Opcode::kAnd, inside, here);
  }
  if (inside == nullptr) {
    result.value = at.build.DynamicUpdateSlice(x.value, update.value, starts);
    return result;
  }
  Instruction* larger = at.build.Pad(x.value, at.Zero(shape.element_type()), room);
  larger = at.build.DynamicUpdateSlice(larger, update.value, starts);
  Instruction* written = at.build.Slice(larger, Dims(starts.size(), 0), shape.dimensions(), Dims(starts.size(), 1));
  result.value = at.build.Select(inside, written, x.value);
  return result;
}

}  // namespace hlorun::passes
