#include "passes/layout/row_major.h"

#include <algorithm>

#include "hlo/builder.h"
#include "hlo/error.h"
#include "hlo/permutation.h"

namespace hlorun::passes {

using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;

namespace {

// Dimensions from the largest stride to the smallest.
std::vector<int64_t> MajorToMinor(const Shape& shape) {
  std::vector<int64_t> order(static_cast<size_t>(shape.rank()));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  if (shape.has_layout() && shape.layout()->minor_to_major.size() == order.size()) {
    order.assign(shape.layout()->minor_to_major.rbegin(), shape.layout()->minor_to_major.rend());
  }
  return order;
}

std::vector<int64_t> Inverse(const std::vector<int64_t>& permutation) {
  std::vector<int64_t> inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) {
    inverse[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  }
  return inverse;
}

// The elements of `x` in row-major order as the bits of `result`, which takes as many bytes: bitcast-convert makes
// parts of an element a last dimension, or elements of one.
Instruction* AsBitsOf(hlo::Builder& build, Instruction* x, const Shape& result) {
  const hlo::ElementType type = result.element_type();
  const int64_t from = hlo::BitsOf(x->shape().element_type()), to = hlo::BitsOf(type), count = result.ElementCount();
  const auto reshaped = [&](Instruction* y, const Dims& dimensions) {
    return y->shape().dimensions() == dimensions ? y : build.Reshape(y, dimensions);
  };
  const auto converted = [&](Instruction* y, const Dims& dimensions) {
    return build.Make(Opcode::kBitcastConvert, {y}, {}, {}, Shape(type, dimensions));
  };
  if (from == to) return converted(reshaped(x, result.dimensions()), result.dimensions());
  if (from < to) {
    Dims parts = result.dimensions();
    parts.push_back(to / from);
    return converted(reshaped(x, parts), result.dimensions());
  }
  const int64_t parts = from / to;
  const bool ends_with_parts = result.rank() > 0 && result.dimensions().back() == parts;
  Dims whole = {count / parts};
  if (ends_with_parts) whole.assign(result.dimensions().begin(), result.dimensions().end() - 1);
  Dims apart = whole;
  apart.push_back(parts);
  return reshaped(converted(reshaped(x, whole), apart), result.dimensions());
}

// bitcast(x): x as it lies in memory (transposed), reshaped to the result's memory order, and back to its dimensions.
void ExpandBitcast(Instruction* bitcast) {
  Instruction* x = bitcast->operand(0);
  const Shape& result = bitcast->shape();
  if (!x->shape().IsArray() || !result.IsArray()) {
    bitcast->parent()->Replace(bitcast, x);
    return;
  }
  hlo::Builder build(bitcast->parent(), bitcast);
  build.before = bitcast;
  if (x->shape().element_type() != result.element_type()) {
    if (!hlo::IsIdentity(MajorToMinor(x->shape())) || !hlo::IsIdentity(MajorToMinor(result))) {
      Fail(ErrorCode::kUnimplemented, "{}: a bitcast between types with a layout that is not row-major",
           bitcast->ToString());
    }
    bitcast->parent()->Replace(bitcast, AsBitsOf(build, x, result));
    return;
  }
  const std::vector<int64_t> before = MajorToMinor(x->shape());
  const std::vector<int64_t> after = MajorToMinor(result);
  Instruction* memory = hlo::IsIdentity(before) ? x : build.Transpose(x, before);
  Dims physical;
  for (int64_t d : after) physical.push_back(result.dimension(d));
  memory = build.Reshape(memory, physical);
  if (!hlo::IsIdentity(after)) memory = build.Transpose(memory, Inverse(after));
  memory->mutable_shape().set_layout(result.layout());  // for a bitcast of this one
  bitcast->parent()->Replace(bitcast, memory);
}

bool IsRowMajorEverywhere(const Shape& shape) {
  bool row_major = true;
  hlo::ForEachLeaf(shape, [&](const hlo::ShapeIndex&, const Shape& leaf) {
    row_major &= !leaf.has_layout() || leaf == leaf.WithRowMajorLayout();
  });
  return row_major;
}

bool MakeRowMajor(Shape& shape) {
  if (IsRowMajorEverywhere(shape)) return false;
  shape = shape.WithRowMajorLayout();
  return true;
}

}  // namespace

bool AssignRowMajorLayouts::Run(hlo::Module& module, PassContext&) {
  bool changed = false;
  for (hlo::Computation* computation : module.PostOrder()) {
    for (Instruction* instruction : computation->PostOrder()) {
      if (!instruction->Is(Opcode::kBitcast)) continue;
      ExpandBitcast(instruction);
      changed = true;
    }
  }
  for (const auto& computation : module.computations()) {
    for (const auto& instruction : computation->instructions()) changed |= MakeRowMajor(instruction->mutable_shape());
  }
  if (module.entry_layout) {
    for (Shape& shape : module.entry_layout->parameters) changed |= MakeRowMajor(shape);
    changed |= MakeRowMajor(module.entry_layout->result);
  }
  return changed;
}

}  // namespace hlorun::passes
