#include "passes/dynamic/carrier.h"

#include <functional>

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Shape;

Instruction* AsInstruction(hlo::Builder& build, SizedValue& value) {
  if (value.value != nullptr) return value.value;
  std::vector<Instruction*> elements;
  for (SizedValue& element : value.elements) elements.push_back(AsInstruction(build, element));
  return value.value = build.Tuple(std::move(elements));
}

SizedValue FromInstruction(hlo::Builder& build, Instruction* instruction) {
  SizedValue value{instruction, {}, {}};
  const Shape& shape = instruction->shape();
  value.sizes.resize(static_cast<size_t>(shape.rank()), nullptr);
  if (!shape.IsTuple()) return value;
  for (size_t i = 0; i < shape.tuple_shapes().size(); ++i) {
    value.elements.push_back(FromInstruction(build, build.GetTupleElement(instruction, static_cast<int64_t>(i))));
  }
  return value;
}

std::vector<SizedValue*> LeavesOf(SizedValue& value) {
  const bool is_tuple = value.value == nullptr || value.value->shape().IsTuple();
  if (!is_tuple) return {&value};
  std::vector<SizedValue*> leaves;
  for (SizedValue& element : value.elements) {
    for (SizedValue* leaf : LeavesOf(element)) leaves.push_back(leaf);
  }
  return leaves;
}

Carrier::Carrier(Shape shape) : shape_(std::move(shape)) {
  for (const Shape& leaf : hlo::FlattenShape(shape_)) sized_.emplace_back(static_cast<size_t>(leaf.rank()), false);
}

bool Carrier::Include(SizedValue& value) {
  bool added = false;
  const std::vector<SizedValue*> leaves = LeavesOf(value);
  for (size_t i = 0; i < leaves.size(); ++i) {
    for (size_t d = 0; d < leaves[i]->sizes.size(); ++d) {
      if (leaves[i]->sizes[d] == nullptr || sized_[i][d]) continue;
      sized_[i][d] = added = true;
    }
  }
  return added;
}

int64_t Carrier::size_count() const {
  int64_t count = 0;
  for (const std::vector<bool>& leaf : sized_) count += std::count(leaf.begin(), leaf.end(), true);
  return count;
}

Shape Carrier::PackedShape() const {
  if (size_count() == 0) return shape_;
  std::vector<Shape> elements = shape_.IsTuple() ? shape_.tuple_shapes() : std::vector<Shape>{shape_};
  elements.insert(elements.end(), static_cast<size_t>(size_count()), Shape::Scalar(hlo::ElementType::kS32));
  return Shape::Tuple(std::move(elements));
}

Instruction* Carrier::Pack(hlo::Builder& build, SizedValue& value) const {
  if (size_count() == 0) return AsInstruction(build, value);
  std::vector<Instruction*> elements;
  if (shape_.IsTuple()) {
    for (SizedValue& element : value.elements) elements.push_back(AsInstruction(build, element));
  } else {
    elements.push_back(value.value);
  }
  const std::vector<SizedValue*> leaves = LeavesOf(value);
  for (size_t i = 0; i < leaves.size(); ++i) {
    for (size_t d = 0; d < sized_[i].size(); ++d) {
      if (!sized_[i][d]) continue;
      Instruction* size = leaves[i]->sizes[d];
      if (size == nullptr)
        size = build.ScalarConstant(hlo::ElementType::kS32, leaves[i]->value->shape().dimensions()[d]);
      elements.push_back(size);
    }
  }
  return build.Tuple(std::move(elements));
}

SizedValue Carrier::Unpack(hlo::Builder& build, Instruction* packed) const {
  if (size_count() == 0) return FromInstruction(build, packed);
  SizedValue all = FromInstruction(build, packed);
  const auto elements = static_cast<ptrdiff_t>(all.elements.size()) - size_count();
  std::vector<SizedValue> sizes(all.elements.begin() + elements, all.elements.end());
  all.elements.resize(static_cast<size_t>(elements));
  SizedValue value = shape_.IsTuple() ? SizedValue{nullptr, {}, std::move(all.elements)} : std::move(all.elements[0]);
  const std::vector<SizedValue*> leaves = LeavesOf(value);
  size_t next = 0;
  for (size_t i = 0; i < leaves.size(); ++i) {
    for (size_t d = 0; d < sized_[i].size(); ++d) {
      if (sized_[i][d]) leaves[i]->sizes[d] = sizes[next++].value;
    }
  }
  return value;
}

}  // namespace hlorun::passes
